package lakewright.spark;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.apache.iceberg.Table;
import org.apache.iceberg.actions.DeleteOrphanFiles.PrefixMismatchMode;
import org.apache.iceberg.spark.actions.DeleteOrphanFilesSparkAction;
import org.apache.iceberg.spark.actions.SparkActions;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Compares a listing with a table's metadata as Iceberg's action {@code deleteOrphanFiles} does, and deletes nothing.
 *
 * <p>The action returns the addresses of all files in the memory of the driver. With {@code stream-results}, it returns
 * a sample of 20,000. Its own steps, which are not public, leave all addresses on the executors.
 */
public final class UnreferencedFiles {
  private UnreferencedFiles() {}

  /**
   * Return the files that nothing refers to, in column {@code value}. Spark caches them: the caller unpersists them.
   *
   * @param files columns {@code file_path} and {@code last_modified}, as {@code remove_orphan_files} expects them
   * @param olderThan only files that are older than this instant, in milliseconds since 1970
   */
  public static Dataset<?> find(SparkSession spark, Table table, Dataset<Row> files, long olderThan)
      throws Throwable {
    DeleteOrphanFilesSparkAction action =
        SparkActions.get(spark).deleteOrphanFiles(table).olderThan(olderThan).compareToFileList(files);
    Object listed = call(action, "actualFileIdentDS");
    Object referenced = call(action, "validFileIdentDS");
    return (Dataset<?>) call(action, "findOrphanFiles", listed, referenced, PrefixMismatchMode.ERROR);
  }

  private static Object call(DeleteOrphanFilesSparkAction action, String name, Object... arguments)
      throws Throwable {
    for (Method method : DeleteOrphanFilesSparkAction.class.getDeclaredMethods()) {
      if (method.getName().equals(name) && method.getParameterCount() == arguments.length) {
        try {
          method.setAccessible(true);
          return method.invoke(action, arguments);
        } catch (InvocationTargetException error) {
          throw error.getCause();
        }
      }
    }
    throw new IllegalStateException("expected Iceberg 1.12.0, found another version without " + name);
  }
}
