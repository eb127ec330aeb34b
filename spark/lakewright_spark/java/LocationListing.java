package lakewright.spark;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.aws.s3.S3FileIO;
import org.apache.iceberg.aws.s3.S3FileIOProperties;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.SupportsPrefixOperations;
import org.apache.iceberg.spark.source.SerializableTableWithSize;
import org.apache.iceberg.util.BucketUtil;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.ListObjectsV2Request;

/**
 * Lists the files under a table's location on the executors, with the table's own FileIO.
 *
 * <p>On S3, each task lists a range of keys. Iceberg's own distributed listing needs a Hadoop file system; its listing
 * by FileIO keeps all paths in the driver.
 */
public final class LocationListing {
  private static final StructType SCHEMA =
      new StructType()
          .add("file_path", DataTypes.StringType, false)
          .add("last_modified", DataTypes.TimestampType, false);

  private LocationListing() {}

  /**
   * Return the columns {@code file_path} and {@code last_modified}, as {@code remove_orphan_files} expects them.
   *
   * @param location the table's location without a trailing slash
   * @param boundaries addresses that divide the files into parts of similar size, in ascending order of their bytes
   */
  public static Dataset<Row> list(SparkSession spark, Table table, String location, List<String> boundaries) {
    List<Range> ranges = new ArrayList<>();
    if (canListRanges(table.io(), location)) {
      String after = null;
      for (String boundary : boundaries) {
        ranges.add(new Range(after, boundary));
        after = boundary;
      }
      ranges.add(new Range(after, null));
    } else {
      ranges.add(new Range(null, null));
    }
    JavaSparkContext context = JavaSparkContext.fromSparkContext(spark.sparkContext());
    Broadcast<Table> broadcast = context.broadcast(SerializableTableWithSize.copyOf(table));
    return spark.createDataFrame(
        context.parallelize(ranges, ranges.size()).flatMap(new ListRange(broadcast, location + "/")), SCHEMA);
  }

  /**
   * Return about one of {@code step} addresses of the current data files that begin with a prefix, in column {@code
   * value}. Executors read the manifests.
   */
  public static Dataset<String> sample(SparkSession spark, Table table, String prefix, int step, int tasks) {
    Snapshot current = table.currentSnapshot();
    List<ManifestFile> manifests = current == null ? List.of() : current.dataManifests(table.io());
    if (manifests.isEmpty()) {
      return spark.emptyDataset(Encoders.STRING());
    }
    JavaSparkContext context = JavaSparkContext.fromSparkContext(spark.sparkContext());
    Broadcast<Table> broadcast = context.broadcast(SerializableTableWithSize.copyOf(table));
    JavaRDD<ManifestFile> files = context.parallelize(manifests, Math.min(manifests.size(), tasks));
    return spark.createDataset(files.flatMap(new ReadSample(broadcast, prefix, step)).rdd(), Encoders.STRING());
  }

  private record ReadSample(Broadcast<Table> table, String prefix, int step)
      implements FlatMapFunction<ManifestFile, String> {
    @Override
    public Iterator<String> call(ManifestFile manifest) throws IOException {
      List<String> sample = new ArrayList<>();
      try (CloseableIterable<String> paths =
          ManifestFiles.readPaths(manifest, table.value().io(), table.value().specs())) {
        for (String path : paths) {
          if (Math.floorMod(BucketUtil.hash(path), step) == 0 && path.startsWith(prefix)) {
            sample.add(path);
          }
        }
      }
      return sample.iterator();
    }
  }

  /** Directory buckets return keys in no order. */
  private static boolean canListRanges(FileIO io, String location) {
    return io instanceof S3FileIO && !Address.parse(location).bucket().endsWith("--x-s3");
  }

  /** Addresses after the first and up to the last, both of which may be null. */
  record Range(String after, String last) implements java.io.Serializable {}

  private record Address(String scheme, String bucket, String key) {
    static Address parse(String text) {
      String[] parts = text.split("://", 2);
      int slash = parts[1].indexOf('/');
      return slash < 0
          ? new Address(parts[0], parts[1], "")
          : new Address(parts[0], parts[1].substring(0, slash), parts[1].substring(slash + 1));
    }
  }

  private static final class ListRange implements FlatMapFunction<Range, Row> {
    private final Broadcast<Table> table;
    private final String prefix;

    ListRange(Broadcast<Table> table, String prefix) {
      this.table = table;
      this.prefix = prefix;
    }

    @Override
    public Iterator<Row> call(Range range) {
      FileIO io = table.value().io();
      if (io instanceof S3FileIO s3 && canListRanges(io, prefix)) {
        return listKeys(s3, range).iterator();
      }
      return StreamSupport.stream(((SupportsPrefixOperations) io).listPrefix(prefix).spliterator(), false)
          .map(file -> toRow(toAddress(file.location()), file.createdAtMillis()))
          .iterator();
    }

    /** Return the whole address. Iceberg's FileIO for ADLS returns the path within the container. */
    private String toAddress(String listed) {
      Address address = Address.parse(prefix);
      return listed.contains("://") ? listed : address.scheme() + "://" + address.bucket() + "/" + listed;
    }

    private Stream<Row> listKeys(S3FileIO io, Range range) {
      Address address = Address.parse(prefix);
      S3Client client = io.client(prefix);
      String bucket =
          new S3FileIOProperties(io.properties())
              .bucketToAccessPointMapping()
              .getOrDefault(address.bucket(), address.bucket());
      ListObjectsV2Request.Builder request = ListObjectsV2Request.builder().bucket(bucket).prefix(address.key());
      if (range.after() != null) {
        request.startAfter(Address.parse(range.after()).key());
      }
      byte[] last = range.last() == null ? null : toBytes(Address.parse(range.last()).key());
      String root = address.scheme() + "://" + address.bucket() + "/";
      return client.listObjectsV2Paginator(request.build()).stream()
          .flatMap(page -> page.contents().stream())
          .takeWhile(object -> last == null || Arrays.compareUnsigned(toBytes(object.key()), last) <= 0)
          .map(object -> toRow(root + object.key(), object.lastModified().toEpochMilli()));
    }

    private static byte[] toBytes(String key) {
      return key.getBytes(StandardCharsets.UTF_8);
    }

    private static Row toRow(String path, long millis) {
      return RowFactory.create(path, new Timestamp(millis));
    }
  }
}
