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
   * @param rows the paths are in the first column
   * @param limit the largest number of files to add
   */
  public static int addFiles(SparkSession spark, DeleteFiles deletion, Iterator<Row> rows, int limit) {
    int count = 0;
    while (count < limit && rows.hasNext()) {
      deletion.deleteFile(rows.next().getString(0));
      count++;
    }
    return count;
  }
}
