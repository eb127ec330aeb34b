import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.OverwriteFiles;
import org.apache.iceberg.Table;

/** Commits data files that do not exist, so that a table has the metadata of a large table. */
public final class GeneratedFiles implements BiConsumer<Table, int[]> {
  private static final int REPLACED = 1000;

  /** Commit files. The numbers are: commits, files of a commit, partitions. Each tenth commit replaces earlier files. */
  @Override
  public void accept(Table table, int[] numbers) {
    List<DataFile> earlier = new ArrayList<>();
    for (int commit = 0; commit < numbers[0]; commit++) {
      AppendFiles append = table.newFastAppend();
      List<DataFile> files = new ArrayList<>();
      for (int number = 0; number < numbers[1]; number++) {
        String partition = "part=" + (commit * numbers[2] / numbers[0]);
        DataFile file =
            DataFiles.builder(table.spec())
                .withPath(String.format("%s/data/%s/%05d-%05d-0a1b2c3d4e5f.parquet", table.location(), partition, number, commit))
                .withPartitionPath(partition)
                .withFileSizeInBytes(100L << 20)
                .withRecordCount(1_000_000)
                .build();
        append.appendFile(file);
        files.add(file);
      }
      if (commit % 10 == 9) {
        OverwriteFiles replacement = table.newOverwrite();
        earlier.subList(0, Math.min(REPLACED, earlier.size())).forEach(replacement::deleteFile);
        files.forEach(replacement::addFile);
        replacement.commit();
      } else {
        append.commit();
      }
      earlier = files;
    }
  }
}
