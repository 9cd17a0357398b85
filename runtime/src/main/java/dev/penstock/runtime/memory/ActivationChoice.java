package dev.penstock.runtime.memory;

import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.metrics.Quantities;
import java.util.ArrayList;
import java.util.List;

/**
 * What becomes of activations between forward and backward so that a run fits into its memory
 * limit.
 *
 * @param blocks that run again one by one, counted over the whole model
 * @param offloaded stages whose activations leave their device
 * @param heldBytes the most that a rank holds with it
 * @param keptBytes the same where all activations are kept
 * @param limitBytes of every rank
 * @param stepNanos a simulated step; the same at any rate of computing of which ways take the same
 *     share
 * @param keptNanos the same where all activations are kept
 */
public record ActivationChoice(
        List<Integer> blocks,
        List<Integer> offloaded,
        long heldBytes,
        long keptBytes,
        long limitBytes,
        long stepNanos,
        long keptNanos) {
    public ActivationChoice {
        blocks = List.copyOf(blocks);
        offloaded = List.copyOf(offloaded);
    }

    /** Whether it keeps within the limit; otherwise it is what needs least. */
    public boolean fits() {
        return heldBytes <= limitBytes;
    }

    /** Returns the configuration with the choice in place of the question. */
    public LoadedConfig in(LoadedConfig loaded) {
        return loaded.withActivations(blocks, offloaded);
    }

    /** Explains the choice in a line. */
    public String reason() {
        String limit = Quantities.bytes(limitBytes);
        if (!fits()) {
            return "%s needs least: %s on the largest rank, %s more than the limit of %s"
                    .formatted(
                            words(),
                            Quantities.bytes(heldBytes),
                            Quantities.bytes(heldBytes - limitBytes),
                            limit);
        }
        if (blocks.isEmpty() && offloaded.isEmpty()) {
            return "all kept: %s of %s".formatted(Quantities.bytes(heldBytes), limit);
        }
        return "%s: %s of %s, and a step takes %s longer than with all kept, which would need %s"
                .formatted(
                        words(),
                        Quantities.bytes(heldBytes),
                        limit,
                        Quantities.percent(stepNanos / (double) keptNanos - 1),
                        Quantities.bytes(keptBytes));
    }

    private String words() {
        List<String> words = new ArrayList<>();
        if (!blocks.isEmpty()) {
            words.add("recompute = " + blocks);
        }
        if (!offloaded.isEmpty()) {
            words.add("offload = " + offloaded);
        }
        return words.isEmpty() ? "keeping all" : String.join(", ", words);
    }
}
