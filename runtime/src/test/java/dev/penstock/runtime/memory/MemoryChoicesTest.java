package dev.penstock.runtime.memory;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.launch.RunParts;
import dev.penstock.runtime.memory.MemoryChoices.Possible;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What is said to fit proves to fit, and one layer more does not. */
class MemoryChoicesTest {
    private static final String RUN =
            """
            model { context = 32, width = 32, heads = 2, layers = 4 }
            data { source = pom.xml, tokenizer = bytes }
            batch { sequences = 8, micro-batches = 4 }
            pipeline.stages = 1
            schedule.kind = gpipe
            """;

    private static LoadedConfig run(List<String> settings) {
        return ConfigLoader.loadOfRun("run", RUN, settings);
    }

    private static MemoryChoices choices(long limit) {
        return MemoryChoices.of(
                MemoryChoicesTest::run,
                RunParts::proof,
                Rates.nominal(run(List.of()).config().device()),
                limit);
    }

    private static long held(Possible choice, int layers) {
        List<String> settings = new ArrayList<>(choice.settings());
        settings.replaceAll(
                each ->
                        each.startsWith("pipeline.chunks")
                                ? "pipeline.chunks=" + (layers + 2)
                                : each);
        settings.add("model.layers=" + layers);
        return RunParts.proof(run(settings)).held().largest();
    }

    private static Possible named(MemoryChoices found, String name) {
        return found.possible()
                .filter(choice -> choice.name().equals(name))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void theLargestThatTrainsIsProvedAndNoLayerMoreIs() {
        long limit = RunParts.proof(run(List.of())).held().largest() + 200_000;

        MemoryChoices found = choices(limit);

        for (String name :
                List.of("keep all activations", "recompute whole units", "swap everything")) {
            Possible choice = named(found, name);
            int layers = choice.largestLayers();
            assertThat(layers).as(name).isGreaterThanOrEqualTo(4);
            assertThat(held(choice, layers)).as(name).isLessThanOrEqualTo(limit);
            if (!found.isLargestTried(choice)) {
                assertThat(held(choice, layers + 1)).as(name).isGreaterThan(limit);
            }
        }
        assertThat(named(found, "swap everything").diskBytes()).isPositive();
        assertThat(named(found, "offload all activations").hostBytes()).isPositive();
        assertThat(found.fastest().orElseThrow().name()).isEqualTo("keep all activations");
    }

    @Test
    void whatNeedsLeastIsToldWhereNothingFits() {
        MemoryChoices found = choices(1_000);

        assertThat(found.fastest()).isEmpty();
        assertThat(found.least().orElseThrow().heldBytes()).isGreaterThan(1_000);
        assertThat(found.possible()).allMatch(choice -> choice.largestLayers() == 0);
    }
}
