package dev.penstock.runtime.memory;

import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.report.MemoryPlan;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.validate.MemoryModel;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The order of a run, judged, and what its ranks hold in it, proved as for a run. What is held is
 * worked out when it is asked for.
 */
public final class MemoryProof {
    /**
     * What ranks hold.
     *
     * @param ranks entry r is rank r's
     * @param most by rank, the most that its device holds, also after a death where others then
     *     take over
     * @param units bytes of the activations of units, by stage and slice
     */
    public record Held(List<MemoryPlan> ranks, List<Long> most, MemoryModel units) {
        public Held {
            ranks = List.copyOf(ranks);
            most = List.copyOf(most);
        }

        /** The most of any rank. */
        public long largest() {
            return most.stream().mapToLong(bytes -> bytes).max().orElse(0);
        }
    }

    private final RunConfig config;
    private final Schedule order;
    private final InFlight inFlight;
    private final GptSettings sizes;
    private final Supplier<Held> weigh;
    private @Nullable Held held;

    /**
     * @param order of a training step, lowered
     * @param weigh works out what is held
     */
    public MemoryProof(
            RunConfig config,
            Schedule order,
            InFlight inFlight,
            GptSettings sizes,
            Supplier<Held> weigh) {
        this.config = config;
        this.order = order;
        this.inFlight = inFlight;
        this.sizes = sizes;
        this.weigh = weigh;
    }

    public RunConfig config() {
        return config;
    }

    public Schedule order() {
        return order;
    }

    InFlight inFlight() {
        return inFlight;
    }

    public GptSettings sizes() {
        return sizes;
    }

    /** What the ranks hold. */
    public Held held() {
        Held known = held;
        if (known == null) {
            known = weigh.get();
            held = known;
        }
        return known;
    }

    /** Of the ranks that run the same program, the most that one holds; entry p is program p's. */
    List<Long> mostOfPrograms() {
        Map<Integer, Long> most = new TreeMap<>();
        for (int rank = 0; rank < held().most().size(); rank++) {
            most.merge(config.grid().programOf(rank, order), held().most().get(rank), Math::max);
        }
        return List.copyOf(most.values());
    }
}
