package dev.penstock.runtime.model;

import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StageBuilder;
import dev.penstock.actors.spi.StageMirror;
import dev.penstock.cuda.device.Device;
import dev.penstock.runtime.data.BatchSource;
import java.util.List;

/** Builds the stages of a run. Safe to use from any thread; each stage belongs to its caller's. */
public final class GptStageFactory implements StageBuilder {
    private final GptSettings settings;
    private final List<StageBudget> budgets;
    private final BatchSource batches;
    private final ParameterSource source;

    /**
     * @param budgets entry s is what stage s must be able to hold
     * @param batches tokens of every step
     * @param source first values of parameters and optimizer; what it lacks starts from its default
     */
    public GptStageFactory(
            GptSettings settings,
            List<StageBudget> budgets,
            BatchSource batches,
            ParameterSource source) {
        if (budgets.size() != settings.partition().stages()) {
            throw new IllegalArgumentException(
                    "%d stages need a budget each, got %d"
                            .formatted(settings.partition().stages(), budgets.size()));
        }
        this.settings = settings;
        this.budgets = List.copyOf(budgets);
        this.batches = batches;
        this.source = source;
    }

    @Override
    public GptStage create(int stage, RankPlace place, Device device) {
        return GptStage.build(
                settings,
                settings.role(stage, place),
                budgets.get(stage),
                place,
                device,
                batches,
                source);
    }

    @Override
    public StageMirror mirror(int stage, RankPlace place, Device device) {
        return GptMirror.build(
                settings,
                settings.role(stage, place),
                Sharding.of(settings, place),
                device,
                source);
    }

    /** The same stages without first values. */
    public GptStageFactory blank() {
        return startingFrom((_, _, _) -> true);
    }

    /** The same stages with other first values. */
    public GptStageFactory startingFrom(ParameterSource other) {
        return new GptStageFactory(settings, budgets, batches, other);
    }

    /** Device memory that a stage will hold from its creation to its end; nothing is allocated. */
    public StageMemory predictedMemory(int stage, RankPlace place) {
        StageRole role = settings.role(stage, place);
        StageScopes scopes = StageScopes.counting(settings, "stage " + stage);
        StageBuffers.allocate(
                scopes, settings, role, Sharding.of(settings, place), budgets.get(stage));
        return scopes.memory();
    }

    /** Device memory that a mirror of a stage will hold; nothing is allocated. */
    public StageMemory predictedMirrorMemory(int stage, RankPlace place) {
        StageScopes scopes = StageScopes.counting(settings, "mirror of stage " + stage);
        GptMirror.allocate(
                scopes, settings, settings.role(stage, place), Sharding.of(settings, place));
        return scopes.memory();
    }
}
