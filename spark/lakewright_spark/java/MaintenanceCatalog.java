package lakewright.spark;

import java.io.IOException;
import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.rest.HTTPClient;
import org.apache.iceberg.rest.ParserContext;
import org.apache.iceberg.rest.RESTCatalog;
import org.apache.iceberg.rest.RESTClient;
import org.apache.iceberg.rest.RESTRequest;
import org.apache.iceberg.rest.RESTResponse;
import org.apache.iceberg.rest.RESTUtil;
import org.apache.iceberg.rest.auth.AuthSession;
import org.apache.iceberg.rest.responses.ErrorResponse;
import org.apache.iceberg.rest.responses.LoadTableResponse;

/**
 * Iceberg's REST catalog, whose loaded tables refresh their metadata only if it changed, and without credentials.
 *
 * <p>Each commit of Iceberg refreshes the table first. Its own client asks for credentials of the storage each time, and
 * ignores them: a table renews its credentials by itself, at another endpoint, before they expire.
 */
public final class MaintenanceCatalog extends RESTCatalog {
  /** Property: value of the access delegation by which this server returns no credentials. Unset: the catalog's. */
  static final String REFRESH_DELEGATION = "lakewright.refresh-delegation";

  /** Create the catalog. Iceberg requires a constructor without parameters. */
  public MaintenanceCatalog() {
    super(MaintenanceCatalog::newClient);
  }

  private static RESTClient newClient(Map<String, String> properties) {
    RESTClient client =
        HTTPClient.builder(properties)
            .uri(properties.get(CatalogProperties.URI))
            .withHeaders(RESTUtil.configHeaders(properties))
            .build();
    String delegation = properties.get(REFRESH_DELEGATION);
    Map<String, String> headers = delegation == null ? Map.of() : Map.of("X-Iceberg-Access-Delegation", delegation);
    return new RefreshClient(client, headers, new ConcurrentHashMap<>());
  }

  /** Metadata of a table that some object still uses, with its entity tag. */
  private record Known(String tag, WeakReference<TableMetadata> metadata) {}

  /** Adds conditions to the requests by which a table refreshes itself. */
  private static final class RefreshClient implements RESTClient {
    private final RESTClient client;
    private final Map<String, String> refreshHeaders;
    private final Map<String, Known> knownByPath;

    RefreshClient(RESTClient client, Map<String, String> refreshHeaders, Map<String, Known> knownByPath) {
      this.client = client;
      this.refreshHeaders = refreshHeaders;
      this.knownByPath = knownByPath;
    }

    /** Only a table's refresh gets a table without a consumer of headers: the catalog's load has one. */
    @Override
    public <T extends RESTResponse> T get(
        String path,
        Map<String, String> query,
        Class<T> type,
        Map<String, String> headers,
        Consumer<ErrorResponse> errors) {
      if (type != LoadTableResponse.class) {
        return client.get(path, query, type, headers, errors);
      }
      Map<String, String> conditions = new HashMap<>(headers);
      conditions.putAll(refreshHeaders);
      Known known = knownByPath.get(path);
      TableMetadata metadata = known == null ? null : known.metadata().get();
      if (metadata != null) {
        conditions.put("If-None-Match", known.tag());
      }
      Map<String, String> received = new HashMap<>();
      T response = client.get(path, query, type, conditions, errors, received::putAll);
      if (response == null && metadata != null) {
        return type.cast(LoadTableResponse.builder().withTableMetadata(metadata).build());
      }
      remember(path, response, received);
      return response;
    }

    @Override
    public <T extends RESTResponse> T get(
        String path,
        Map<String, String> query,
        Class<T> type,
        Map<String, String> headers,
        Consumer<ErrorResponse> errors,
        Consumer<Map<String, String>> responseHeaders) {
      Map<String, String> received = new HashMap<>();
      T response =
          client.get(path, query, type, headers, errors, fields -> {
            received.putAll(fields);
            responseHeaders.accept(fields);
          });
      remember(path, response, received);
      return response;
    }

    /** A commit responds with the new metadata, which the next refresh need not get again. */
    @Override
    public <T extends RESTResponse> T post(
        String path, RESTRequest body, Class<T> type, Map<String, String> headers, Consumer<ErrorResponse> errors) {
      Map<String, String> received = new HashMap<>();
      T response = client.post(path, body, type, headers, errors, received::putAll);
      remember(path, response, received);
      return response;
    }

    private void remember(String path, RESTResponse response, Map<String, String> received) {
      if (!(response instanceof LoadTableResponse loaded)) {
        return;
      }
      knownByPath.values().removeIf(known -> known.metadata().get() == null);
      String tag =
          received.entrySet().stream()
              .filter(header -> header.getKey().equalsIgnoreCase("ETag"))
              .map(Map.Entry::getValue)
              .findFirst()
              .orElse(null);
      if (tag == null) {
        knownByPath.remove(path);
      } else {
        knownByPath.put(path, new Known(tag, new WeakReference<>(loaded.tableMetadata())));
      }
    }

    @Override
    public RESTClient withAuthSession(AuthSession session) {
      return new RefreshClient(client.withAuthSession(session), refreshHeaders, knownByPath);
    }

    @Override
    public void head(String path, Map<String, String> headers, Consumer<ErrorResponse> errors) {
      client.head(path, headers, errors);
    }

    @Override
    public <T extends RESTResponse> T delete(
        String path, Class<T> type, Map<String, String> headers, Consumer<ErrorResponse> errors) {
      return client.delete(path, type, headers, errors);
    }

    @Override
    public <T extends RESTResponse> T delete(
        String path,
        Map<String, String> query,
        Class<T> type,
        Map<String, String> headers,
        Consumer<ErrorResponse> errors) {
      return client.delete(path, query, type, headers, errors);
    }

    @Override
    public <T extends RESTResponse> T get(
        String path,
        Map<String, String> query,
        Class<T> type,
        Map<String, String> headers,
        Consumer<ErrorResponse> errors,
        ParserContext context) {
      return client.get(path, query, type, headers, errors, context);
    }

    @Override
    public <T extends RESTResponse> T post(
        String path,
        RESTRequest body,
        Class<T> type,
        Map<String, String> headers,
        Consumer<ErrorResponse> errors,
        Consumer<Map<String, String>> responseHeaders) {
      return client.post(path, body, type, headers, errors, responseHeaders);
    }

    @Override
    public <T extends RESTResponse> T post(
        String path,
        RESTRequest body,
        Class<T> type,
        Map<String, String> headers,
        Consumer<ErrorResponse> errors,
        Consumer<Map<String, String>> responseHeaders,
        ParserContext context) {
      return client.post(path, body, type, headers, errors, responseHeaders, context);
    }

    @Override
    public <T extends RESTResponse> T postForm(
        String path,
        Map<String, String> form,
        Class<T> type,
        Map<String, String> headers,
        Consumer<ErrorResponse> errors) {
      return client.postForm(path, form, type, headers, errors);
    }

    @Override
    public void close() throws IOException {
      client.close();
    }
  }
}
