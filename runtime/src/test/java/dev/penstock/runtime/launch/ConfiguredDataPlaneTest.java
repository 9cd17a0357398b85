package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Frames of another run are refused by its identity, so no two runs may share one. */
class ConfiguredDataPlaneTest {
    @Test
    void runsWhoseNamesHaveOneHashCodeHaveDifferentIdentities() {
        assertThat("runs/Aa-1".hashCode()).isEqualTo("runs/BB-1".hashCode());

        assertThat(ConfiguredDataPlane.identity("runs/Aa-1"))
                .isNotEqualTo(ConfiguredDataPlane.identity("runs/BB-1"));
    }

    @Test
    void identitiesUseMoreThanThirtyTwoBits() {
        Set<Long> upperHalves = new HashSet<>();
        for (int run = 1; run <= 100; run++) {
            upperHalves.add(ConfiguredDataPlane.identity("quickstart-" + run) >>> 32);
        }

        assertThat(upperHalves).hasSizeGreaterThan(90);
    }
}
