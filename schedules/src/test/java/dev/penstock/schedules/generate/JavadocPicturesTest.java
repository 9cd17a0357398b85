package dev.penstock.schedules.generate;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.base.BackwardOrder;
import dev.penstock.schedules.generate.base.GenerateOptions;
import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.generate.wired.WiredOrder;
import dev.penstock.schedules.generate.wired.Wirings;
import dev.penstock.schedules.generate.zerobubble.InterleavedZeroBubble;
import dev.penstock.schedules.generate.zerobubble.SearchedZeroBubble;
import dev.penstock.schedules.generate.zerobubble.ZeroBubbleH1;
import dev.penstock.schedules.generate.zerobubble.ZeroBubbleH2;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.render.GridColors;
import dev.penstock.schedules.render.ScheduleGrid;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.OptionalInt;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** The picture in a generator's Javadoc is what the generator draws. */
class JavadocPicturesTest {
    private static final Path SOURCES = Path.of("src/main/java/dev/penstock/schedules/generate");

    static List<Arguments> pictures() {
        var none = OptionalInt.empty();
        return List.of(
                Arguments.of("GPipe", GPipe.schedule(shape(1, 8, 1), BackwardOrder.FIFO)),
                Arguments.of(
                        "OneForwardOneBackward", OneForwardOneBackward.schedule(shape(1, 8, 1))),
                Arguments.of("TeraPipe", TeraPipe.schedule(shape(1, 2, 2))),
                Arguments.of("Decoding", Decoding.schedule(shape(1, 4, 2))),
                Arguments.of("TeraPipe1F1B", TeraPipe1F1B.schedule(shape(1, 4, 2))),
                Arguments.of("Seq1F1B", Seq1F1B.schedule(shape(1, 4, 2))),
                Arguments.of("Interleaved", Interleaved.schedule(shape(2, 4, 1), none)),
                Arguments.of(
                        "GeneralizedInterleaved",
                        GeneralizedInterleaved.schedule(
                                new PipelineShape(3, 2, 4, List.of(1)), none)),
                Arguments.of("BreadthFirst", BreadthFirst.schedule(shape(2, 4, 1))),
                Arguments.of(
                        "Seq1F1BInterleaved", Seq1F1BInterleaved.schedule(shape(2, 2, 2), none)));
    }

    /** All ops take the same time. */
    static List<Arguments> splitPictures() {
        var small = new PipelineShape(3, 2, 3, List.of(1));
        var searched = GenerateOptions.defaults().withCosts(new OpCosts(1, 1, 1, 1));
        return List.of(
                Arguments.of("ZeroBubbleH1", ZeroBubbleH1.schedule(shape(1, 8, 1)), 0),
                Arguments.of("ZeroBubbleH2", ZeroBubbleH2.schedule(shape(1, 8, 1)), 0),
                Arguments.of(
                        "InterleavedZeroBubble",
                        InterleavedZeroBubble.schedule(small, OptionalInt.empty()),
                        0),
                Arguments.of(
                        "SearchedZeroBubble",
                        SearchedZeroBubble.onePerRank(PipelineShape.of(3, 6), searched),
                        1),
                Arguments.of("WiredOrder", withoutRankThree(), 0));
    }

    private static Schedule withoutRankThree() {
        PipelineShape shape = PipelineShape.of(2, 6).withPeers(3);
        var wirings = Wirings.equal(shape);
        return WiredOrder.schedule(
                shape,
                wirings.without(wirings.straight(), 3),
                WiredOrder.Backwards.SPLIT,
                Collections.nCopies(6, OpCosts.unit()),
                WiredOrder.usualCaps(shape));
    }

    private static PipelineShape shape(int chunks, int microBatches, int slices) {
        return new PipelineShape(4, chunks, microBatches, Collections.nCopies(slices, 1));
    }

    @ParameterizedTest
    @MethodSource("pictures")
    void showsWhatTheCodeDoes(String generator, Schedule schedule) throws IOException {
        check(generator, drawn(schedule, CostModel.of(1, 1, 0)));
    }

    @ParameterizedTest
    @MethodSource("splitPictures")
    void showsSplitBackwards(String generator, Schedule schedule, long transfer)
            throws IOException {
        check(generator, drawn(schedule, CostModel.split(1, 1, 1, transfer)));
    }

    private static void check(String generator, List<String> drawn) throws IOException {
        List<String> written = written(generator);

        assertThat(written).hasSameSizeAs(drawn);
        for (int rank = 0; rank < written.size(); rank++) {
            String line = written.get(rank);
            if (line.endsWith(" ...")) {
                assertThat(drawn.get(rank))
                        .startsWith(line.substring(0, line.length() - 4).strip());
            } else {
                assertThat(line).isEqualTo(drawn.get(rank));
            }
        }
    }

    private static Path file(String name) throws IOException {
        try (Stream<Path> files = Files.walk(SOURCES)) {
            return files.filter(file -> file.endsWith(name)).findFirst().orElseThrow();
        }
    }

    private static List<String> written(String generator) throws IOException {
        return Files.readAllLines(file(generator + ".java")).stream()
                .filter(line -> line.matches(" \\* rank \\d+ \\|.*"))
                .map(line -> line.substring(3))
                .toList();
    }

    /** Idle cells are blank, and a stage is named only where a rank holds several. */
    private static List<String> drawn(Schedule schedule, CostModel costs) {
        String grid =
                ScheduleGrid.time(ScheduleSimulator.simulate(schedule, costs), GridColors.NONE);
        String stage = schedule.shape().chunks() == 1 ? "\\d+" : "";
        List<List<String>> rows =
                grid.lines()
                        .map(line -> line.substring(line.indexOf('|') + 1).strip())
                        .map(line -> Stream.of(line.split(" +")))
                        .map(
                                cells ->
                                        cells.map(
                                                cell ->
                                                        cell.replaceFirst(
                                                                "^(\\.|" + stage + ")", "")))
                        .map(Stream::toList)
                        .toList();
        int width = rows.stream().flatMap(List::stream).mapToInt(String::length).max().orElse(0);
        return Stream.iterate(0, rank -> rank < rows.size(), rank -> rank + 1)
                .map(
                        rank ->
                                rows.get(rank).stream()
                                        .map(cell -> cell + " ".repeat(width - cell.length()))
                                        .collect(
                                                Collectors.joining(" ", "rank " + rank + " | ", ""))
                                        .stripTrailing())
                .toList();
    }
}
