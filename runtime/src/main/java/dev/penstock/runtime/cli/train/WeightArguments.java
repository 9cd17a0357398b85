package dev.penstock.runtime.cli.train;

import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.DeviceKind;
import dev.penstock.runtime.model.shape.HeldWeights;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** How the weights of a model that writes are held. */
final class WeightArguments {
    private static final String OPTION = "--weights";

    @Option(
            names = OPTION,
            paramLabel = "KIND",
            description =
                    "How weights are held: float32, bf16 (half the memory) or int8 (integers of 8"
                            + " bits with a scale for each row, a quarter of the memory); bf16 and"
                            + " int8 on CPUs alone (default: float32).")
    private @Nullable String weights;

    /**
     * Returns what is wrong with them.
     *
     * @param device that is used
     */
    List<Problem> problems(DeviceKind device) {
        if (weights == null) {
            return List.of();
        }
        Optional<HeldWeights> known = HeldWeights.of(weights);
        if (known.isEmpty()) {
            return List.of(
                    Problem.atOption(
                            OPTION,
                            "one of " + String.join(", ", HeldWeights.words()),
                            weights,
                            ""));
        }
        return known.get() == HeldWeights.FLOAT32 || !device.isCuda()
                ? List.of()
                : List.of(
                        Problem.atOption(
                                OPTION,
                                "float32 with " + device.word(),
                                weights,
                                "try --device cpu"));
    }

    /** Returns how they are held, if nothing is wrong. */
    HeldWeights held() {
        return weights == null
                ? HeldWeights.FLOAT32
                : HeldWeights.of(weights).orElse(HeldWeights.FLOAT32);
    }
}
