package lakewright.spark;

import java.util.Map;

/** Provides the current bearer token. */
interface TokenSource {
  String TOKEN = "lakewright.auth.token";
  String TOKEN_URL = "lakewright.auth.token-url";
  String CLIENT_ID = "lakewright.auth.client-id";
  String CLIENT_SECRET = "lakewright.auth.client-secret";
  String SCOPE = "lakewright.auth.scope";
  String AUDIENCE = "lakewright.auth.audience";

  /** Return the token for the next request. */
  String token();

  /** Return the source that a catalog's properties describe. Sources of equal client credentials are shared. */
  static TokenSource from(Map<String, String> properties) {
    String token = properties.get(TOKEN);
    if (token != null) {
      return new SecretReference(token)::read;
    }
    return ClientCredentials.shared(
        new ClientCredentials.Settings(
            required(properties, TOKEN_URL),
            required(properties, CLIENT_ID),
            new SecretReference(required(properties, CLIENT_SECRET)),
            properties.get(SCOPE),
            properties.get(AUDIENCE)));
  }

  private static String required(Map<String, String> properties, String name) {
    String value = properties.get(name);
    if (value == null || value.isEmpty()) {
      throw new IllegalArgumentException("expected the catalog property " + name + " or " + TOKEN);
    }
    return value;
  }
}
