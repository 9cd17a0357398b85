package dev.penstock.runtime.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A stage's process dies and recovery is off: the run ends soon, says who it was, and leaves
 * nothing on the machine.
 */
@EnabledOnOs(OS.LINUX)
class DeadStageIT {
    private static final Duration LIMIT = Duration.ofSeconds(5);
    private static final int LISTENING = 0x0A;

    @TempDir Path folder;

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void aKilledStageEndsTheRunWithItsName(int rank) throws Exception {
        String name = "dead_stage_" + rank + "_" + ProcessHandle.current().pid();
        Training training =
                Training.onText(folder)
                        .set("run.name=" + name, "run.steps=1000000", "checkpoint.every=0")
                        .set("pipeline.processes=per-stage", "recovery.enabled=false");

        try (ForkedTraining run = ForkedTraining.start(training).awaitSteps(20)) {
            List<ProcessHandle> family = run.family();
            Set<Integer> ports = listeningPorts(family);
            assertThat(family).as("the run, a media driver and two stages").hasSize(4);
            assertThat(sharedMemory(name)).isNotEmpty();
            assertThat(ports).isNotEmpty();

            run.ofRank(rank).destroyForcibly();
            Trained ended = run.awaitEnd(LIMIT);

            assertThat(ended.exitCode()).as(ended.out()).isEqualTo(ExitCode.FAILURE);
            assertThat(ended.out()).contains("rank " + rank, "signal 9").doesNotContain("\tat ");
            await().atMost(LIMIT).until(() -> family.stream().noneMatch(ProcessHandle::isAlive));
            assertThat(sharedMemory(name)).isEmpty();
            for (int port : ports) {
                new ServerSocket(port, 1, InetAddress.getLoopbackAddress()).close();
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"single", "per-stage"})
    void aKilledRunLeavesNoProcessBehind(String processes) throws Exception {
        String name = "dead_run_" + ProcessHandle.current().pid();
        Training training =
                Training.onText(folder)
                        .set("run.name=" + name, "run.steps=1000000", "checkpoint.every=0")
                        .set("pipeline.processes=" + processes);

        try (ForkedTraining run = ForkedTraining.start(training).awaitSteps(20)) {
            List<ProcessHandle> family = run.family();
            assertThat(sharedMemory(name)).isNotEmpty();

            run.signal("KILL");

            await().atMost(LIMIT).until(() -> family.stream().noneMatch(ProcessHandle::isAlive));
            if (processes.equals("per-stage")) {
                assertThat(sharedMemory(name)).isEmpty(); // the driver's process ends in order
            } else {
                deleteSharedMemory(name); // nobody was left to do so
            }
        }
    }

    private static List<File> sharedMemory(String run) throws IOException {
        try (Stream<Path> entries = Files.list(Path.of("/dev/shm"))) {
            return entries.filter(entry -> entry.getFileName().toString().contains(run))
                    .map(Path::toFile)
                    .toList();
        }
    }

    private static void deleteSharedMemory(String run) throws IOException {
        for (File directory : sharedMemory(run)) {
            try (Stream<Path> entries = Files.walk(directory.toPath())) {
                for (Path entry : entries.sorted(Comparator.reverseOrder()).toList()) {
                    Files.delete(entry);
                }
            }
        }
    }

    /** Ports on which these processes wait for connections. */
    private static Set<Integer> listeningPorts(List<ProcessHandle> processes) throws IOException {
        Set<String> sockets = new HashSet<>();
        for (ProcessHandle process : processes) {
            try (Stream<Path> open = Files.list(Path.of("/proc/" + process.pid() + "/fd"))) {
                for (Path descriptor : open.toList()) {
                    if (Files.isSymbolicLink(descriptor)) {
                        sockets.add(Files.readSymbolicLink(descriptor).toString());
                    }
                }
            }
        }
        List<String> lines = new ArrayList<>(Files.readAllLines(Path.of("/proc/net/tcp")));
        lines.addAll(Files.readAllLines(Path.of("/proc/net/tcp6")));
        Set<Integer> ports = new HashSet<>();
        for (String line : lines) {
            String[] words = line.strip().split("\\s+");
            if (sockets.contains("socket:[" + words[9] + "]")
                    && Integer.parseInt(words[3], 16) == LISTENING) {
                ports.add(Integer.parseInt(words[1].substring(words[1].indexOf(':') + 1), 16));
            }
        }
        return ports;
    }
}
