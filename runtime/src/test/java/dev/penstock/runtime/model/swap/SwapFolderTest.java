package dev.penstock.runtime.model.swap;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.disk.SmallDisk;
import dev.penstock.runtime.model.shape.OptimizerState;
import dev.penstock.runtime.model.shape.SwapCommit;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Groups in files, killed at every write of an update. */
class SwapFolderTest {
    private static final int ELEMENTS = 100;

    private static final int GROUPS = 2;

    @TempDir Path root;

    private static final class Kill extends RuntimeException {
        private static final long serialVersionUID = 1;
    }

    /**
     * An optimizer of no use: what it makes depends on every gradient and on the order of steps.
     */
    private static void update(SwappedGroup group, SwapCommit commit) {
        group.renew(
                commit.step(),
                stretch -> {
                    for (int i = 0; i < stretch.gradient().columns(); i++) {
                        float old = get(stretch.state().master(), i);
                        float by = (float) commit.clipFactor() * get(stretch.gradient(), i);
                        set(stretch.state().master(), i, 2 * old + by);
                        set(stretch.state().m(), i, old);
                    }
                    stretch.gradient().segment().fill((byte) 0);
                });
    }

    /** An outer turn of as little use: what it makes depends on how often it is applied. */
    private static void turn(SwappedGroup group, long step) {
        group.renewOuter(
                step,
                (first, anchor, momentum) -> {
                    for (int i = 0; i < anchor.columns(); i++) {
                        float old = get(anchor, i);
                        set(anchor, i, 3 * old + first + i);
                        set(requireNonNull(momentum), i, old);
                    }
                },
                (_, anchor, own) -> {
                    for (int i = 0; i < own.columns(); i++) {
                        set(own, i, 2 * get(own, i) + get(anchor, i));
                    }
                });
    }

    private static float get(Tensor row, int i) {
        return row.segment().getAtIndex(ValueLayout.JAVA_FLOAT, i);
    }

    private static void set(Tensor row, int i, float value) {
        row.segment().setAtIndex(ValueLayout.JAVA_FLOAT, i, value);
    }

    private final class Stage implements AutoCloseable {
        final Device device = Devices.open(DeviceSettings.DEFAULTS);
        final SwapFolder folder;
        final List<SwappedGroup> groups = new ArrayList<>();

        Stage(Optional<SwapCommit> kept, Consumer<String> beforeWrite) {
            folder =
                    new SwapFolder(
                            SwapState.folder(root, 0, 0),
                            device.memory(),
                            kept.isPresent(),
                            true,
                            beforeWrite);
            for (int g = 0; g < GROUPS; g++) {
                groups.add(folder.group("h." + g, ELEMENTS, OptimizerState.FLOAT32));
            }
            groups.forEach(group -> group.addOuter(true));
            if (kept.isEmpty()) {
                byte[] ones = new byte[ELEMENTS * Float.BYTES];
                Arrays.fill(ones, (byte) 1);
                groups.forEach(group -> group.state().master().write(MemorySegment.ofArray(ones)));
                groups.forEach(SwappedGroup::anchorHere);
            }
            for (SwappedGroup group : groups) {
                if (kept.isPresent() && group.step() != kept.get().step()) {
                    update(group, kept.get());
                }
                kept.ifPresent(commit -> turn(group, commit.step()));
            }
            folder.complete();
        }

        void train(long step) {
            for (int g = 0; g < GROUPS; g++) {
                for (int i = 0; i < ELEMENTS; i++) {
                    set(groups.get(g).gradient(), i, 1000f * (float) step + 100f * g + i % 7);
                }
                groups.get(g).sealGradient(step);
            }
            var commit = new SwapCommit(step, 0.5 + step);
            folder.commit(commit);
            groups.forEach(group -> update(group, commit));
            groups.forEach(group -> turn(group, step));
        }

        List<Integer> sums() {
            return groups.stream()
                    .flatMap(
                            g ->
                                    Stream.of(
                                            g.state().master(),
                                            g.state().m(),
                                            g.outer().anchor(),
                                            requireNonNull(g.outer().momentum())))
                    .map(row -> row.contents().asByteBuffer().hashCode())
                    .toList();
        }

        @Override
        public void close() {
            folder.close();
            device.close();
        }
    }

    private Optional<SwapCommit> found() {
        return new SwapState(root, 1, 1).committed("run", _ -> {});
    }

    @Test
    void aKillAtAnyWriteOfAnUpdateLosesNothing() throws IOException {
        List<Integer> calm;
        int writes;
        List<String> told = new ArrayList<>();
        try (var stage = new Stage(Optional.empty(), told::add)) {
            stage.train(1);
            int before = told.size();
            stage.train(2);
            writes = told.size() - before;
            stage.train(3);
            calm = stage.sums();
        }
        assertThat(writes).isEqualTo(GROUPS + 1 + 3 * GROUPS + 6 * GROUPS);
        new SwapState(root, 1, 1).own("run");

        for (int killed = 0; killed < writes; killed++) {
            int[] left = {Integer.MAX_VALUE};
            try (var stage =
                    new Stage(
                            Optional.empty(),
                            _ -> {
                                if (left[0]-- == 0) {
                                    throw new Kill();
                                }
                            })) {
                stage.train(1);
                left[0] = killed;
                assertThatThrownBy(() -> stage.train(2)).isInstanceOf(Kill.class);
            }

            Optional<SwapCommit> kept = found();

            assertThat(kept).as("write %d", killed).isPresent();
            assertThat(kept.get().step()).isEqualTo(killed <= GROUPS ? 1 : 2);
            try (var again = new Stage(kept, _ -> {})) {
                for (long step = kept.get().step() + 1; step <= 3; step++) {
                    again.train(step);
                }
                assertThat(again.sums()).as("write %d", killed).isEqualTo(calm);
            }
        }
    }

    @Test
    void aTornFileOrOneOfAnotherStepIsNotGoneOnWith() throws IOException {
        new SwapState(root, 1, 1).own("run");
        try (var stage = new Stage(Optional.empty(), _ -> {})) {
            stage.train(1);
        }
        assertThat(found()).isPresent();
        List<String> notes = new ArrayList<>();
        Path file = SwapState.folder(root, 0, 0).resolve("1-h.1.state");
        byte[] whole = Files.readAllBytes(file);
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.write(ByteBuffer.wrap(new byte[] {77}), whole.length - 5);
        }

        assertThat(new SwapState(root, 1, 1).committed("run", notes::add)).isEmpty();
        assertThat(notes).singleElement().asString().contains("1-h.1.state is torn");

        Files.write(file, whole);
        assertThat(found()).isPresent();
        Files.delete(SwapState.folder(root, 0, 0).resolve("groups"));
        assertThat(found()).isEmpty();
    }

    @Test
    void aFileThatIsGoneIsNamedWithWhatToDo() throws IOException {
        new SwapState(root, 1, 1).own("run");
        try (var stage = new Stage(Optional.empty(), _ -> {})) {
            stage.train(1);
        }
        Path there = SwapState.folder(root, 0, 0);
        Files.delete(there.resolve("1-h.1.grad"));

        assertThatThrownBy(() -> new Stage(found(), _ -> {}).close())
                .isInstanceOf(DeviceException.class)
                .hasMessageContaining("1-h.1.grad: expected the file")
                .hasMessageContaining("delete " + there);
    }

    @Test
    void aTextWithAnotherDigitOrAFileInAnotherPlaceIsNotGoneOnWith() throws IOException {
        new SwapState(root, 1, 1).own("run");
        try (var stage = new Stage(Optional.empty(), _ -> {})) {
            stage.train(1);
        }
        Path there = SwapState.folder(root, 0, 0);
        for (String name : List.of("commit", "groups")) {
            byte[] whole = Files.readAllBytes(there.resolve(name));
            byte[] other = whole.clone();
            other[0] ^= 1; // another step, another name
            Files.write(there.resolve(name), other);
            List<String> notes = new ArrayList<>();

            assertThat(new SwapState(root, 1, 1).committed("run", notes::add)).isEmpty();

            assertThat(notes).singleElement().asString().contains(name + " is torn");
            Files.write(there.resolve(name), whole);
        }
        assertThat(found()).isPresent();

        Files.copy(
                there.resolve("0-h.0.state"),
                there.resolve("1-h.1.state"),
                StandardCopyOption.REPLACE_EXISTING);
        assertThat(found()).isEmpty();
    }

    @Test
    void outerStateThatIsTornOrADifferenceThatIsNeededIsNotGoneOnWith() throws IOException {
        new SwapState(root, 1, 1).own("run");
        try (var stage = new Stage(Optional.empty(), _ -> {})) {
            SwappedRow difference = stage.folder.row("difference", DType.F32, ELEMENTS);
            stage.train(1);
            difference.seal(1, 2);
            stage.train(2);
        }
        assertThat(found()).isPresent();
        for (String name : List.of("1-h.1.outer", "difference")) {
            Path file = SwapState.folder(root, 0, 0).resolve(name);
            byte[] whole = Files.readAllBytes(file);
            byte[] torn = whole.clone();
            torn[torn.length - 5]++;
            Files.write(file, torn);
            List<String> notes = new ArrayList<>();

            assertThat(new SwapState(root, 1, 1).committed("run", notes::add)).isEmpty();

            assertThat(notes).singleElement().asString().contains(name + " is torn");
            Files.write(file, whole);
        }
        assertThat(found()).isPresent();
    }

    /** A process may be killed before it notes its first difference. */
    @Test
    void aDifferenceThatIsNotedFirstAfterAKillIsWhole() throws IOException {
        new SwapState(root, 1, 1).own("run");
        try (var stage = new Stage(Optional.empty(), _ -> {})) {
            SwappedRow _ = stage.folder.row("difference", DType.F32, ELEMENTS);
            stage.train(1);
        }
        try (var again = new Stage(found(), _ -> {})) {
            SwappedRow difference = again.folder.row("difference", DType.F32, ELEMENTS);
            again.train(2);
            difference.seal(2, 3);
        }

        assertThat(new SwapState(root, 1, 1).committed("run", note -> assertThat(note).isNull()))
                .isPresent();
    }

    @Test
    void aDiskWithoutRoomForAllFilesIsNamedBeforeAnythingIsWritten(@TempDir Path below)
            throws Exception {
        try (SmallDisk disk = SmallDisk.below(below, "size=64k");
                Device device = Devices.open(DeviceSettings.DEFAULTS);
                var full = new SwapFolder(disk.path(), device.memory(), false, true)) {
            assertThatThrownBy(() -> full.group("h", 100_000, OptimizerState.FLOAT32))
                    .isInstanceOf(DeviceException.class)
                    .hasMessageContaining("No space left")
                    .hasMessageContaining("device.swap");
        }
    }

    @Test
    void newGroupsAreZeroAndFilesCanBeRemoved() throws IOException {
        try (var stage = new Stage(Optional.empty(), _ -> {})) {
            SwappedGroup group = stage.groups.getFirst();
            assertThat(group.state().v().contents().toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
            assertThat(group.gradient().contents().toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
        }

        new SwapState(root, 1, 1).remove();

        assertThat(root).isEmptyDirectory();
    }

    @Test
    void aFolderIsOfOneRunAtATime() {
        try (var _ = new Stage(Optional.empty(), _ -> {})) {
            assertThatThrownBy(() -> new Stage(Optional.empty(), _ -> {}))
                    .isInstanceOf(DeviceException.class)
                    .hasMessageContaining("another run uses it")
                    .hasMessageContaining("device.swap");
        }
    }

    @Test
    void aFolderThatCannotBeWrittenIsOneClearError() throws IOException {
        Files.writeString(root.resolve("replica-0"), "no folder");

        assertThatThrownBy(() -> new Stage(Optional.empty(), _ -> {}))
                .isInstanceOf(DeviceException.class)
                .hasMessageContaining("device.swap");
    }
}
