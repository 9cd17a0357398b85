package dev.penstock.actors.simulation;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.SoloGroup;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * Attention over one token in every slice of every context part. A token sees itself and, the less
 * the further, its part's earlier slices and those of other parts, the same slice too of earlier
 * ones. The tokens of a part travel round the ring as keys and values do, and in a backward their
 * gradients travel behind them: two passes are under way at once.
 */
final class SimAttention {
    private static final float SHARE = 0.1f;

    private final int slices;
    private final int parts;
    private final int part;
    private final List<Tensor> tokens;
    private final List<Tensor> gradients;
    private final Map<Integer, float[]> inputs = new HashMap<>();
    private final Map<Integer, float[]> inputGradients = new HashMap<>();

    SimAttention(Scenario scenario, RankPlace place, DeviceScope scope) {
        this.slices = scenario.slices();
        this.parts = scenario.grid().context();
        this.part = place.context();
        this.tokens = two(scope, "tokens");
        this.gradients = two(scope, "gradients of tokens");
    }

    /** The one that is here, and the one that comes. */
    private List<Tensor> two(DeviceScope scope, String name) {
        return IntStream.range(0, 2)
                .mapToObj(i -> scope.tensor(name + i, DType.F32, 1, slices))
                .toList();
    }

    void beginStep() {
        inputs.clear();
        inputGradients.clear();
    }

    /** How much of a token another part's token sees, if any, so many hops behind it. */
    static float share(int hop) {
        return SHARE / (1 + hop);
    }

    /** How many tokens of another part the token of a slice sees, from the first. */
    static int seen(int slice, int part, int other) {
        return other < part ? slice + 1 : slice;
    }

    /** Returns all that a unit sees. */
    float forward(WorkUnit unit, float x, CollectiveGroup ring) {
        own(inputs, unit, Float.NaN)[unit.slice()] = x; // what comes later cannot be seen yet
        return sum(unit, 0, false, ring);
    }

    /**
     * Returns all that a unit sees once more.
     *
     * @param gradient of that
     */
    float backward(WorkUnit unit, float gradient, CollectiveGroup ring) {
        return sum(unit, gradient, true, ring);
    }

    /** Returns the gradient of what was given to the unit's forward, after its backward. */
    float inputGradient(WorkUnit unit) {
        return own(inputGradients, unit, 0)[unit.slice()];
    }

    private float[] own(Map<Integer, float[]> of, WorkUnit unit, float otherwise) {
        return of.computeIfAbsent(
                unit.microBatch(),
                _ -> {
                    var none = new float[slices];
                    Arrays.fill(none, otherwise);
                    return none;
                });
    }

    private float sum(WorkUnit unit, float gradient, boolean backward, CollectiveGroup ring) {
        float[] own = own(inputs, unit, Float.NaN);
        float[] ownGradients = own(inputGradients, unit, 0);
        float sum = own[unit.slice()];
        ownGradients[unit.slice()] += gradient;
        for (int i = 0; i < unit.slice(); i++) {
            sum += share(0) * own[i];
            ownGradients[i] += share(0) * gradient;
        }
        return parts == 1 ? sum : sum + sumOfOthers(unit, gradient, backward, ring);
    }

    private float sumOfOthers(
            WorkUnit unit, float gradient, boolean backward, CollectiveGroup ring) {
        for (int i = 0; i < slices; i++) {
            SimStage.set(tokens.getFirst(), i, own(inputs, unit, Float.NaN)[i]);
        }
        Collective pass = ring.pass(tokens.get(0), tokens.get(1));
        Collective gradientPass = SoloGroup.DONE;
        float sum = 0;
        for (int hop = 1; hop < parts; hop++) {
            ring.await(pass);
            Tensor here = tokens.get(hop % 2);
            if (hop < parts - 1) {
                pass = ring.pass(here, tokens.get((hop + 1) % 2));
            }
            int seen = seen(unit.slice(), part, (part - hop + parts) % parts);
            for (int i = 0; i < seen; i++) {
                sum += share(hop) * SimStage.get(here, i);
            }
            if (backward) {
                ring.await(gradientPass);
                Tensor behind = gradients.get(hop % 2);
                for (int i = 0; i < slices; i++) {
                    float before = hop == 1 ? 0 : SimStage.get(behind, i);
                    SimStage.set(behind, i, before + (i < seen ? share(hop) * gradient : 0));
                }
                gradientPass = ring.pass(behind, gradients.get((hop + 1) % 2));
            }
        }
        ring.await(gradientPass);
        for (int i = 0; backward && i < slices; i++) {
            own(inputGradients, unit, 0)[i] += SimStage.get(gradients.get(parts % 2), i);
        }
        return sum;
    }
}
