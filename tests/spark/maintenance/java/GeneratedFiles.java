import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.OverwriteFiles;
import org.apache.iceberg.Table;
import org.apache.iceberg.types.Type.TypeID;

/** Commits data files that do not exist, so that a table has the metadata of a large table. */
public final class GeneratedFiles implements BiConsumer<Table, int[]> {
  private static final int REPLACED = 1000;

  /**
   * Commit files. The numbers are: commits, files of a commit, partitions. Each tenth commit replaces earlier files.
   *
   * <p>The column {@code part} of a partition has its number, or the day with this number since the start of 2020 if it
   * is no integer.
   */
  @Override
  public void accept(Table table, int[] numbers) {
    boolean isNumber = table.schema().findType("part").typeId() == TypeID.INTEGER;
    List<DataFile> earlier = new ArrayList<>();
    for (int commit = 0; commit < numbers[0]; commit++) {
      AppendFiles append = table.newFastAppend();
      List<DataFile> files = new ArrayList<>();
      for (int number = 0; number < numbers[1]; number++) {
        int day = commit * numbers[2] / numbers[0];
        String partition = "part=" + (isNumber ? day : LocalDate.of(2020, 1, 1).plusDays(day));
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
