package dev.penstock.systemtests.memory;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.disk.SmallDisk;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Disks that hold what does not fit into a device, and disks that are full themselves. */
class OffloadAndFullDisksIT {
    @TempDir Path folder;

    /** The limit is lower than what the run needs, but enough without what is on disk. */
    @Test
    void aRunThatDoesNotFitIntoTheDeviceTrainsWithOffload() throws Exception {
        Training whole = wide("whole");
        List<String> bits = whole.complete().lossBits();
        String limit = "device.memory-limit=" + roomWithout(folder.resolve("disk")) + " B";

        Trained refused = wide("refused").set(limit).run();
        Trained trained = offloaded("trained", folder.resolve("disk")).set(limit).complete();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err()).contains("device.memory-limit", "at least ");
        assertThat(trained.lossBits()).isEqualTo(bits);
        assertThat(trained.out()).containsPattern("state on disk [0-9.]+ [KM]iB");
        assertThat(trained.directory().resolve("report.html")).content().contains("state on disk");
        try (Stream<Path> left = Files.list(folder.resolve("disk"))) {
            assertThat(left).isEmpty();
        }
    }

    /** Returns the minimum that the run itself reports, plus some KiB that kernels take. */
    private long roomWithout(Path disk) {
        String said = offloaded("asked", disk).set("device.memory-limit=1 MiB").run().err();
        Matcher wanted = Pattern.compile("at least ([0-9,]+) bytes").matcher(said);
        assertThat(wanted.find()).as(said).isTrue();
        return Long.parseLong(wanted.group(1).replace(",", "")) + (256 << 10);
    }

    private Training offloaded(String name, Path disk) {
        return wide(name).set("parallel.zero={stage=3, offload=\"" + disk + "\"}");
    }

    private Training wide(String name) {
        return Training.onText(folder.resolve(name))
                .set("run.steps=3", "model.width=64", "evaluation.every=0", "pipeline.stages=1");
    }

    @Test
    void anOffloadThatWouldFillItsDiskIsOneClearErrorBeforeTheStart() throws Exception {
        try (SmallDisk disk = SmallDisk.below(folder, "size=200k")) {
            Trained ended = offloaded("full", disk.path()).run();

            assertThat(ended.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(ended.err())
                    .contains("parallel.zero.offload", "room for", disk.path().toString())
                    .doesNotContain("\tat ");
            try (Stream<Path> left = Files.list(disk.path())) {
                assertThat(left).isEmpty();
            }
        }
    }

    /** The disk has room for the first stage's file but not for the second one's. */
    @Test
    void aConversionThatFillsItsDiskLeavesNoFilesAndLosesNothing() throws Exception {
        Path run = saved();
        try (SmallDisk disk = SmallDisk.below(folder, "size=300k")) {
            Path to = disk.path().resolve("converted");

            Cli full = Cli.run("checkpoint", "convert", "" + run, "" + to, "--stages", "2");

            assertThat(full.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(full.err()).contains("bytes needed", "free").doesNotContain("\tat ");
            try (Stream<Path> left = Files.walk(disk.path())) {
                assertThat(left.filter(Files::isRegularFile)).isEmpty();
            }
        }
        expectWhole(run);
        Path roomy = folder.resolve("roomy");
        Cli again = Cli.run("checkpoint", "convert", "" + run, "" + roomy, "--stages", "2");
        assertThat(again.exitCode()).as(again.err()).isZero();
    }

    /** The old weights stay when there is no room to replace them. */
    @Test
    void anExportThatFillsItsDiskKeepsWhatWasThere() throws Exception {
        Path run = saved();
        try (SmallDisk disk = SmallDisk.below(folder, "size=250k")) {
            Path weights = disk.path().resolve("model.safetensors");
            assertThat(export(run, weights).exitCode()).isZero();
            byte[] before = Files.readAllBytes(weights);
            List<Path> files = files(disk.path());

            Cli full = export(run, weights, "--force");

            assertThat(full.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(full.err()).contains("bytes needed", "free").doesNotContain("\tat ");
            assertThat(Files.readAllBytes(weights)).isEqualTo(before);
            assertThat(files(disk.path())).isEqualTo(files);
        }
        expectWhole(run);
    }

    private static List<Path> files(Path folder) throws IOException {
        try (Stream<Path> there = Files.list(folder)) {
            return there.sorted().toList();
        }
    }

    private static Cli export(Path run, Path weights, String... more) {
        return Cli.run(
                Stream.concat(
                                Stream.of(
                                        "checkpoint", "export", "" + run, "--output", "" + weights),
                                Stream.of(more))
                        .toArray(String[]::new));
    }

    private Path saved() {
        return Training.onText(folder.resolve("saved"))
                .set("run.steps=1", "evaluation.every=0")
                .complete()
                .directory();
    }

    private static void expectWhole(Path run) {
        Cli verified = Cli.run("checkpoint", "verify", "" + run);
        assertThat(verified.exitCode()).as(verified.err()).isZero();
    }
}
