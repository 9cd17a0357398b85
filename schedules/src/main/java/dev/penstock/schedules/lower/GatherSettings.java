package dev.penstock.schedules.lower;

import dev.penstock.schedules.ir.LayerRange;
import java.util.List;
import java.util.OptionalInt;
import java.util.stream.IntStream;

/**
 * How ZeRO-3 parameters come and go.
 *
 * @param residency how long they stay
 * @param lookAhead how many computations ahead of the first that needs them they are gathered, so
 *     that the way takes place beside those; 0 gathers right before it is needed
 * @param layers layers of every stage, gathered one after another; empty for whole stages
 */
public record GatherSettings(ParameterResidency residency, int lookAhead, OptionalInt layers) {
    public GatherSettings {
        if (layers.isPresent() && layers.getAsInt() < 1) {
            throw new IllegalArgumentException(
                    "a stage has 1 layer or more to gather, got " + layers.getAsInt());
        }
        if (lookAhead < 0) {
            throw new IllegalArgumentException(
                    "parameters are gathered 0 or more computations ahead, got " + lookAhead);
        }
    }

    /** Whole stages. */
    public GatherSettings(ParameterResidency residency, int lookAhead) {
        this(residency, lookAhead, OptionalInt.empty());
    }

    /** The same for stages of so many layers, each of which is gathered by itself. */
    public GatherSettings byLayer(int layersOfStage) {
        return new GatherSettings(residency, lookAhead, OptionalInt.of(layersOfStage));
    }

    /** What one op gathers or releases, in order. */
    List<LayerRange> ranges() {
        return layers.isEmpty()
                ? List.of(LayerRange.ALL)
                : IntStream.range(0, layers.getAsInt())
                        .mapToObj(layer -> new LayerRange(layer, layer))
                        .toList();
    }
}
