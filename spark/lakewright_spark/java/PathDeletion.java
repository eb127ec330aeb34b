package lakewright.spark;

import java.util.Iterator;
import org.apache.iceberg.DeleteFiles;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Adds data files to a deletion of Iceberg by their paths.
 *
 * <p>Python must not: with a text, py4j calls {@code SnapshotProducer.deleteFile(String)}, which is not public and
 * deletes the file from the store at once.
 */
public final class PathDeletion {
  private PathDeletion() {}

  /**
   * Add the next files to a deletion, and return their number.
   *
   * @param paths texts, or rows with the path in the first column
   * @param limit the largest number of files to add
   */
  public static int addFiles(SparkSession spark, DeleteFiles deletion, Iterator<?> paths, int limit) {
    int count = 0;
    while (count < limit && paths.hasNext()) {
      Object path = paths.next();
      deletion.deleteFile(path instanceof Row row ? row.getString(0) : path.toString());
      count++;
    }
    return count;
  }
}
