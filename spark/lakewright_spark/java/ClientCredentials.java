package lakewright.spark;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.iceberg.rest.HTTPClient;
import org.apache.iceberg.rest.RESTClient;
import org.apache.iceberg.rest.auth.AuthSession;
import org.apache.iceberg.rest.auth.OAuth2Util;
import org.apache.iceberg.rest.responses.OAuthTokenResponse;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** OAuth 2 client credentials. The client secret is read again for each token. */
final class ClientCredentials implements TokenSource {
  /** Settings of the client at its identity provider. Scope and audience may be null. */
  record Settings(String tokenUrl, String clientId, SecretReference secret, String scope, String audience) {}

  private static final Logger LOG = LoggerFactory.getLogger(ClientCredentials.class);
  private static final Map<Settings, ClientCredentials> SHARED = new ConcurrentHashMap<>();
  private static final Map<String, String> TIMEOUTS =
      Map.of("rest.client.connection-timeout-ms", "10000", "rest.client.socket-timeout-ms", "30000");
  private static final Duration RETRY_AFTER = Duration.ofSeconds(5);
  private static final int DEFAULT_SECONDS = 300;

  private final Settings settings;
  private String token;
  private Instant renewAt = Instant.MIN;
  private Instant expiresAt = Instant.MIN;

  private ClientCredentials(Settings settings) {
    this.settings = settings;
  }

  /** Return the one source of these settings, so that sessions and tables of a JVM share its token. */
  static ClientCredentials shared(Settings settings) {
    return SHARED.computeIfAbsent(settings, ClientCredentials::new);
  }

  @Override
  public synchronized String token() {
    if (Instant.now().isAfter(renewAt)) {
      try {
        fetch();
      } catch (RuntimeException error) {
        if (Instant.now().isAfter(expiresAt)) {
          throw error;
        }
        LOG.warn("No new token from {} ({}); the present one is used until it expires",
            settings.tokenUrl(), error.getClass().getSimpleName());
        Instant retryAt = Instant.now().plus(RETRY_AFTER);
        renewAt = retryAt.isBefore(expiresAt) ? retryAt : expiresAt;
      }
    }
    return token;
  }

  private void fetch() {
    String credential = settings.clientId() + ":" + settings.secret().read();
    Map<String, String> optional = settings.audience() == null ? Map.of() : Map.of("audience", settings.audience());
    try (RESTClient client = HTTPClient.builder(TIMEOUTS).build().withAuthSession(AuthSession.EMPTY)) {
      OAuthTokenResponse response =
          OAuth2Util.fetchToken(client, Map.of(), credential, settings.scope(), settings.tokenUrl(), optional);
      int seconds = response.expiresInSeconds() == null ? DEFAULT_SECONDS : response.expiresInSeconds();
      token = response.token();
      Instant now = Instant.now();
      expiresAt = now.plusSeconds(seconds);
      // Renewed after nine tenths of its life, at most a minute before its end.
      renewAt = expiresAt.minusSeconds(Math.min(60, seconds / 10 + 1));
    } catch (java.io.IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
  }
}
