package dev.penstock.runtime.memory;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.config.run.Offload;
import dev.penstock.runtime.config.run.Recompute;
import dev.penstock.runtime.launch.RunParts;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The truth is every choice, proved and simulated. */
class ActivationFitTest {
    private static final String RUN =
            """
            model { context = 32, width = 32, heads = 2, layers = 3 }
            data { source = pom.xml, tokenizer = bytes }
            batch { sequences = 12, micro-batches = 6 }
            """;

    /** As one may write it by hand. */
    private record Choice(List<Integer> blocks, List<Integer> offloaded) {}

    private static LoadedConfig run(String... settings) {
        return ConfigLoader.loadOfRun("run", RUN, List.of(settings));
    }

    /** Every stage keeps all, runs its first blocks again, moves all, or does both. */
    private static List<Choice> every(MemoryProof kept) {
        List<Choice> choices = new ArrayList<>(List.of(new Choice(List.of(), List.of())));
        for (int stage = 0; stage < kept.order().shape().stages(); stage++) {
            var role = kept.sizes().partition().role(stage);
            List<Choice> longer = new ArrayList<>();
            for (Choice begun : choices) {
                for (int again = 0; again <= role.layers(); again++) {
                    List<Integer> blocks = new ArrayList<>(begun.blocks);
                    IntStream.range(0, again).forEach(i -> blocks.add(role.firstLayer() + i));
                    longer.add(new Choice(blocks, begun.offloaded));
                    if (again == 0 || again == role.layers()) {
                        List<Integer> offloaded = new ArrayList<>(begun.offloaded);
                        offloaded.add(stage);
                        longer.add(new Choice(blocks, offloaded));
                    }
                }
            }
            choices = longer;
        }
        return choices;
    }

    /** What the largest model under fit is looked for with. */
    @ParameterizedTest
    @CsvSource({"gpipe, 2, 1", "gis, 1, 3"})
    void theLeastThatAChoiceHoldsIsTheLowestLimitThatFits(String kind, int stages, int chunks) {
        LoadedConfig run =
                run(
                        "schedule.kind=" + kind,
                        "pipeline.stages=" + stages,
                        "pipeline.chunks=" + chunks);
        Rates rates = Rates.nominal(run.config().device());

        long least = ActivationFit.leastBytes(run, RunParts::proof);

        assertThat(ActivationFit.of(run, RunParts::proof, rates, least).fits()).isTrue();
        assertThat(ActivationFit.of(run, RunParts::proof, rates, least - 1).fits()).isFalse();
    }

    @ParameterizedTest
    @CsvSource({
        "gpipe, 2, 1, 25",
        "gpipe, 2, 1, 2000",
        "gis, 1, 3, 400",
    })
    void noOtherChoiceThatFitsIsFaster(String kind, int stages, int chunks, int intensity) {
        LoadedConfig run =
                run(
                        "schedule.kind=" + kind,
                        "pipeline.stages=" + stages,
                        "pipeline.chunks=" + chunks,
                        "device.offload-intensity=" + intensity);
        Rates rates = Rates.nominal(run.config().device());
        Map<Choice, MemoryProof> proofs = new HashMap<>();
        Map<Choice, Long> times = new HashMap<>();
        var limits = new TreeSet<Long>();
        for (Choice choice : every(RunParts.proof(run))) {
            MemoryProof proof =
                    RunParts.proof(run.withActivations(choice.blocks, choice.offloaded));
            proofs.put(choice, proof);
            times.put(choice, StepCosts.stepNanos(proof, rates));
            limits.add(proof.held().largest());
        }
        assertThat(limits.size()).isGreaterThan(3);

        for (long limit : limits) {
            ActivationChoice chosen =
                    ActivationFit.of(
                            run,
                            asked -> requireNonNull(proofs.get(choiceOf(asked))),
                            rates,
                            limit);

            long least =
                    proofs.entrySet().stream()
                            .filter(each -> each.getValue().held().largest() <= limit)
                            .mapToLong(each -> times.getOrDefault(each.getKey(), 0L))
                            .min()
                            .orElseThrow();
            assertThat(chosen.fits()).isTrue();
            assertThat(chosen.stepNanos()).as("%s, limit %d", chosen, limit).isEqualTo(least);
        }
        long tooLittle = limits.first() - 1;
        ActivationChoice none =
                ActivationFit.of(
                        run,
                        asked -> requireNonNull(proofs.get(choiceOf(asked))),
                        rates,
                        tooLittle);
        assertThat(none.fits()).isFalse();
        assertThat(none.heldBytes()).isEqualTo(limits.first());
        assertThat(none.reason()).contains("1 B more than the limit");
    }

    private static Choice choiceOf(LoadedConfig asked) {
        var schedule = asked.config().schedule();
        return new Choice(
                schedule.recompute() instanceof Recompute.Given(var blocks) ? blocks : List.of(),
                schedule.offload() instanceof Offload.Given(var stages) ? stages : List.of());
    }

    @Test
    void whatIsChosenStandsInTheConfigurationThatRuns() {
        long kept = RunParts.proof(run("pipeline.stages=2")).held().largest();
        LoadedConfig asking =
                run(
                        "pipeline.stages=2",
                        "schedule.activations=fit",
                        "device.memory-limit=%d B".formatted(Math.max(1 << 20, kept - 1)));

        LoadedConfig decided = RunParts.decided(asking);

        var schedule = decided.config().schedule();
        assertThat(kept).isGreaterThan(1 << 20);
        assertThat(schedule.activations().word()).isEqualTo("as-set");
        assertThat(choiceOf(decided)).isNotEqualTo(new Choice(List.of(), List.of()));
        assertThat(RunParts.proof(decided).held().largest()).isLessThan(kept);
        assertThat(RunParts.decided(decided)).isSameAs(decided);
    }

    @Test
    void aLimitIsNeededAndNothingIsAskedForTwice() {
        assertThatThrownBy(() -> run("schedule.activations=fit", "schedule.recompute=blocks"))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("set device.memory-limit")
                .hasMessageContaining("leave those out: what fits is chosen");
    }
}
