package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.systemtests.support.ForkedCli;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/** A whole chaos run in one process: pauses, slow stages, full disks. */
@Tag("plain-code")
class ChaosCommandIT {
    private static final String SEED = "42";

    /** Draws a flipped bit in the newest checkpoint, and a worker that dies. */
    private static final String OF_A_CLUSTER = "23";

    @TempDir Path folder;

    @Test
    void bothInvariantsHoldUnderARandomScheduleOfFaults() throws Exception {
        Cli cli = chaos("--faults", "8", "--json");

        assertThat(cli.exitCode()).as("seed %s: %s", SEED, cli.err()).isEqualTo(ExitCode.OK);
        JsonNode answer = new ObjectMapper().readTree(cli.out());
        assertThat(answer.get("holds").asBoolean()).isTrue();
        assertThat(answer.get("steps").asInt()).isEqualTo(12);
        assertThat(answer.get("faults")).hasSize(8);
        assertThat(answer.get("faults"))
                .allSatisfy(
                        fault -> assertThat(fault.get("outcome").asText()).isEqualTo("survived"));
        assertThat(answer.get("command").asText()).contains("--seed " + SEED, "--faults 8");
        assertThat(folder.resolve("chaos/faults/audit").toFile().list()).hasSize(2);
    }

    /** Two replicas of two stages: every rank keeps a book of its own sequences' gradients. */
    @Test
    void bothInvariantsHoldForEveryReplica() throws Exception {
        Cli cli = chaos("--faults", "6", "--set", "parallel={data=2, zero.stage=2}");

        assertThat(cli.exitCode()).as("seed %s: %s", SEED, cli.err()).isEqualTo(ExitCode.OK);
        assertThat(folder.resolve("chaos/faults/audit").toFile().list()).hasSize(4);
    }

    /** Exchanges are under way while most steps are taken, and at a checkpoint. */
    @Test
    void bothInvariantsHoldForReplicasThatTakeStepsAlone() throws Exception {
        Cli cli =
                chaos(
                        "--faults",
                        "4",
                        "--set",
                        "parallel={data=2, outer={every=4, fragments=2, lag=1}}",
                        "--set",
                        "checkpoint.every=5");

        assertThat(cli.exitCode()).as("seed %s: %s", SEED, cli.err()).isEqualTo(ExitCode.OK);
        assertThat(cli.out()).contains("I1 holds", "I2 holds");
    }

    /** The faults include deaths, also in the middle of gathers and sums. */
    @Test
    @EnabledOnOs(OS.LINUX)
    void bothInvariantsHoldForReplicasInProcessesThatDie() throws Exception {
        Cli cli =
                chaos(
                        "--faults",
                        "5",
                        "--json",
                        "--set",
                        "pipeline={stages=1, processes=per-stage}",
                        "--set",
                        ForkedCli.PLAIN_CODE,
                        "--set",
                        "parallel={data=2, zero.stage=3}",
                        "--set",
                        "recovery.mirror=on");

        assertThat(cli.exitCode()).as("seed %s: %s", SEED, cli.err()).isEqualTo(ExitCode.OK);
        JsonNode faults = new ObjectMapper().readTree(cli.out()).get("faults");
        assertThat(faults)
                .anySatisfy(fault -> assertThat(fault.get("fault").asText()).contains("kill"));
    }

    /** Its own model in a cluster of its own, whose nodes are struck from outside. */
    @Test
    @EnabledOnOs(OS.LINUX)
    void bothInvariantsHoldInAClusterWhoseNodesAreStruck() throws Exception {
        Cli cli =
                Cli.run(
                        "chaos",
                        "--seed",
                        OF_A_CLUSTER,
                        "--faults",
                        "2",
                        "--json",
                        "--run-dir",
                        folder.resolve("chaos").toString(),
                        "--set",
                        "run.steps=30",
                        "--set",
                        "model={context=16, width=16}",
                        "--set",
                        "batch={sequences=4, micro-batches=4}",
                        "--set",
                        ForkedCli.PLAIN_CODE);

        assertThat(cli.exitCode())
                .as("seed %s: %s %s", OF_A_CLUSTER, cli.out(), cli.err())
                .isEqualTo(ExitCode.OK);
        JsonNode answer = new ObjectMapper().readTree(cli.out());
        assertThat(answer.get("holds").asBoolean()).isTrue();
        assertThat(answer.get("faults"))
                .hasSize(2)
                .anySatisfy(
                        fault -> {
                            assertThat(fault.get("fault").asText()).contains("kill");
                            assertThat(fault.get("outcome").asText()).isEqualTo("recovered");
                        });
        assertThat(cli.err()).contains("after step");
        assertThat(folder.resolve("chaos/faults/chaos-1/audit")).isDirectory();
    }

    @Test
    void aBadConfigurationIsReportedBeforeAnythingStarts() {
        Cli cli = chaos("--set", "model.width=33");

        assertThat(cli.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(cli.err()).contains("model.width").doesNotContain("training");
        assertThat(folder.resolve("chaos")).doesNotExist();
    }

    private Cli chaos(String... more) {
        Training training = Training.onText(folder);
        List<String> arguments =
                new ArrayList<>(
                        List.of(
                                "chaos",
                                training.configuration().toString(),
                                "--seed",
                                SEED,
                                "--run-dir",
                                folder.resolve("chaos").toString(),
                                "--set",
                                "timeouts.lease=1 s"));
        arguments.addAll(List.of(more));
        return Cli.run(arguments.toArray(String[]::new));
    }
}
