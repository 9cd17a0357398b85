package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.RunConfig;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What is said of a recovery that is configured and cannot be. */
class ConfiguredRecoveryTest {
    private static final String MIRROR = "recovery.mirror=on";
    private static final String PROCESSES = "pipeline.processes=per-stage";

    @Test
    void mirrorsInOneProcessAreSaidToProtectNothing() {
        assertThat(ConfiguredRecovery.mirrorNote(config(MIRROR)))
                .hasValueSatisfying(
                        note ->
                                assertThat(note)
                                        .contains(
                                                "recovery.mirror = on",
                                                "one process",
                                                "pipeline.processes = per-stage"));
    }

    @Test
    void aMirrorOfASingleRankIsSaidToHaveNoEffect() {
        RunConfig alone = config(MIRROR, PROCESSES, "pipeline.stages=1");

        assertThat(ConfiguredRecovery.mirrorNote(alone))
                .hasValueSatisfying(note -> assertThat(note).contains("there is one rank"));
        assertThat(ConfiguredRecovery.mirrorNoteOfRanks(alone)).isPresent();
    }

    @Test
    void mirrorsWithoutRecoveryAreSaidToProtectNothing() {
        assertThat(ConfiguredRecovery.mirrorNote(config(MIRROR, PROCESSES, "recovery.enabled=off")))
                .hasValueSatisfying(note -> assertThat(note).contains("try recovery.enabled = on"));
    }

    @Test
    void mirrorsThatHelpAndMirrorsThatNobodyWantsAreNoNews() {
        assertThat(ConfiguredRecovery.mirrorNote(config(MIRROR, PROCESSES))).isEmpty();
        assertThat(ConfiguredRecovery.mirrorNote(config())).isEmpty();
        assertThat(ConfiguredRecovery.mirrorNoteOfRanks(config(MIRROR))).isEmpty();
    }

    private static RunConfig config(String... overrides) {
        return ConfigLoader.load(Path.of("../sample-configs/quickstart.conf"), List.of(overrides));
    }
}
