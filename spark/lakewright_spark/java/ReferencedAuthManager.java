package lakewright.spark;

import java.util.Map;
import org.apache.iceberg.rest.HTTPHeaders;
import org.apache.iceberg.rest.RESTClient;
import org.apache.iceberg.rest.auth.AuthManager;
import org.apache.iceberg.rest.auth.AuthSession;
import org.apache.iceberg.rest.auth.DefaultAuthSession;

/**
 * Authenticates the requests of Iceberg's REST catalog with a credential that it reads from a file or variable.
 *
 * <p>Iceberg's own managers get the credential as a property, once. This one gets references (`file:PATH`, `env:NAME`)
 * and reads them when it needs them, so that renewed files are used and no property is a secret. It serves the
 * catalog, the S3 request signer, and the refresh of vended credentials, which create it by its name.
 */
public final class ReferencedAuthManager implements AuthManager {
  /** Create the manager. Iceberg requires the parameter. */
  public ReferencedAuthManager(String name) {}

  @Override
  public AuthSession catalogSession(RESTClient client, Map<String, String> properties) {
    TokenSource source = TokenSource.from(properties);
    return new AuthSession() {
      @Override
      public org.apache.iceberg.rest.HTTPRequest authenticate(org.apache.iceberg.rest.HTTPRequest request) {
        HTTPHeaders headers = HTTPHeaders.of(Map.of("Authorization", "Bearer " + source.token()));
        return DefaultAuthSession.of(headers).authenticate(request);
      }

      @Override
      public void close() {}
    };
  }

  @Override
  public void close() {}
}
