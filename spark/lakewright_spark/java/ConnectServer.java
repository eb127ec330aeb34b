package lakewright.spark;

import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connect.service.PreSharedKeyAuthenticationInterceptor;
import org.apache.spark.sql.connect.service.SparkConnectInterceptorRegistry$;
import org.apache.spark.sql.connect.service.SparkConnectService;
import org.apache.spark.util.ShutdownHookManager;
import org.sparkproject.connect.grpc.Server;
import org.sparkproject.connect.grpc.TlsServerCredentials;
import org.sparkproject.connect.grpc.netty.NettyServerBuilder;
import org.sparkproject.connect.grpc.util.AdvancedTlsX509KeyManager;
import scala.Option;
import scala.runtime.BoxedUnit;

/**
 * Runs Spark Connect with a token from a file and, where a folder with a certificate is given, with TLS.
 *
 * <p>Spark 4.1 opens its port without TLS and has no setting for it. With TLS, that port is on loopback only, and a
 * second gRPC server with the same service listens on the network. Arguments: token file, port, and optionally the
 * folder with tls.crt and tls.key, which are read again every minute.
 */
public final class ConnectServer {
  static final String TOKEN = "spark.connect.authenticate.token";

  private static final int GRACE_SECONDS = 20;
  private static final int STOPPED_BEFORE_SPARK = 100;

  private static final AtomicBoolean STOPPING = new AtomicBoolean();

  private ConnectServer() {}

  /** Run the server until the process is asked to end. */
  public static void main(String[] args) throws Exception {
    String token = new SecretReference("file:" + args[0]).read();
    // Not an argument or a file of properties: others could read those.
    System.setProperty(TOKEN, token);
    SparkSession session = SparkSession.builder().getOrCreate();
    System.clearProperty(TOKEN);
    SparkContext context = session.sparkContext();
    int port = Integer.parseInt(args[1]);
    SparkConnectService.start(context);
    Server tls = args.length > 2 ? startWithTls(context, token, port, Path.of(args[2])) : null;
    ShutdownHookManager.addShutdownHook(
        STOPPED_BEFORE_SPARK,
        () -> {
          stop(tls);
          return BoxedUnit.UNIT;
        });
    System.err.printf("Spark Connect listens on port %d %s%n", port, tls == null ? "without TLS" : "with TLS");
    // The context's end, by a signal or a fault, ends the process.
    while (!context.isStopped()) {
      TimeUnit.SECONDS.sleep(1);
    }
    stop(tls);
  }

  private static Server startWithTls(SparkContext context, String token, int port, Path folder)
      throws IOException, GeneralSecurityException {
    File certificate = folder.resolve("tls.crt").toFile();
    File key = folder.resolve("tls.key").toFile();
    AdvancedTlsX509KeyManager keys = new AdvancedTlsX509KeyManager();
    keys.updateIdentityCredentials(certificate, key, 1, TimeUnit.MINUTES, timer());
    NettyServerBuilder builder =
        NettyServerBuilder.forPort(port, TlsServerCredentials.newBuilder().keyManager(keys).build())
            .maxInboundMessageSize(
                (int) context.conf().getSizeAsBytes("spark.connect.grpc.maxInboundMessageSize", "128m"))
            .addService(new SparkConnectService(false))
            .intercept(new PreSharedKeyAuthenticationInterceptor(token));
    SparkConnectInterceptorRegistry$ registry = SparkConnectInterceptorRegistry$.MODULE$;
    registry.chainInterceptors(builder, registry.createConfiguredInterceptors());
    return builder.build().start();
  }

  private static ScheduledExecutorService timer() {
    return Executors.newSingleThreadScheduledExecutor(
        task -> {
          Thread thread = new Thread(task, "tls-certificate");
          thread.setDaemon(true);
          return thread;
        });
  }

  /** Refuse new calls, and let running ones finish for a while. */
  private static void stop(Server tls) {
    if (STOPPING.getAndSet(true)) {
      return;
    }
    try {
      if (tls != null && !tls.shutdown().awaitTermination(GRACE_SECONDS, TimeUnit.SECONDS)) {
        tls.shutdownNow();
      }
      long rest = tls == null ? GRACE_SECONDS : 1;
      SparkConnectService.stop(Option.apply((Object) rest), Option.apply(TimeUnit.SECONDS));
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }
}
