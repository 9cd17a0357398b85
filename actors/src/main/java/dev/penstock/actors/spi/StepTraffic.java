package dev.penstock.actors.spi;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

/**
 * Bytes of tensors that a rank sends to other ranks in a training step, by use; frame headers, what
 * is sent once more after a loss, and what fills a mirror anew after a recovery are not in it.
 *
 * @param activations to the next stage
 * @param activationGradients to the stage before
 * @param keyValues to the next context part, their gradients too; of retentions states, to all
 *     parts
 * @param tensorSums sums and gathers of activations, and parts of softmax, among tensor shards
 * @param parameterGathers own parts of parameters, to who holds the others
 * @param gradientSums of parameters, among who holds the same
 * @param tiedGradients to the other stage that has the same matrix
 * @param mirroredGradients to who holds this rank's mirror, when all sums are done
 * @param outerGradients among replicas that take steps alone: what was sent since the training step
 *     before, also for an evaluation or a checkpoint
 */
public record StepTraffic(
        long activations,
        long activationGradients,
        long keyValues,
        long tensorSums,
        long parameterGathers,
        long gradientSums,
        long tiedGradients,
        long mirroredGradients,
        long outerGradients) {
    /** Nobody to send anything to. */
    public static final StepTraffic NOTHING = new StepTraffic(0, 0, 0, 0, 0, 0, 0, 0, 0);

    /** Of all uses. */
    public long bytes() {
        return byUse().values().stream().mapToLong(Long::longValue).sum();
    }

    /**
     * Returns the bytes of the step that sends most, if these are of all steps: outer gradients
     * travel in others than sums of gradients.
     */
    public long mostBytes() {
        return Math.max(withOuterGradients(0).bytes(), apart(outerGradients).bytes());
    }

    /** As it is shown, with all uses in their order. */
    public Map<String, Long> byUse() {
        Map<String, Long> bytes = new LinkedHashMap<>();
        bytes.put("activations", activations);
        bytes.put("activation gradients", activationGradients);
        bytes.put("keys/values", keyValues);
        bytes.put("tensor sums", tensorSums);
        bytes.put("parameter gathers", parameterGathers);
        bytes.put("gradient sums", gradientSums);
        bytes.put("tied gradients", tiedGradients);
        bytes.put("mirrored gradients", mirroredGradients);
        bytes.put("outer gradients", outerGradients);
        return bytes;
    }

    /**
     * From {@link #byUse}.
     *
     * @param bytes by use; those that are missing are 0
     */
    public static StepTraffic of(Map<String, Long> bytes) {
        long[] uses =
                NOTHING.byUse().keySet().stream()
                        .mapToLong(use -> Objects.requireNonNullElse(bytes.get(use), 0L))
                        .toArray();
        return new StepTraffic(
                uses[0], uses[1], uses[2], uses[3], uses[4], uses[5], uses[6], uses[7], uses[8]);
    }

    /** Both together. */
    public StepTraffic plus(StepTraffic more) {
        return combined(more, 1);
    }

    /** The same with other bytes of outer gradients. */
    public StepTraffic withOuterGradients(long bytes) {
        return new StepTraffic(
                activations,
                activationGradients,
                keyValues,
                tensorSums,
                parameterGathers,
                gradientSums,
                tiedGradients,
                mirroredGradients,
                bytes);
    }

    /** The same where replicas take steps alone: they send each other outer gradients only. */
    public StepTraffic apart(long bytes) {
        return new StepTraffic(
                activations,
                activationGradients,
                keyValues,
                tensorSums,
                0,
                0,
                tiedGradients,
                mirroredGradients,
                bytes);
    }

    /** What was sent since it was {@code before}. */
    public StepTraffic minus(StepTraffic before) {
        return combined(before, -1);
    }

    private StepTraffic combined(StepTraffic other, long factor) {
        return new StepTraffic(
                activations + factor * other.activations,
                activationGradients + factor * other.activationGradients,
                keyValues + factor * other.keyValues,
                tensorSums + factor * other.tensorSums,
                parameterGathers + factor * other.parameterGathers,
                gradientSums + factor * other.gradientSums,
                tiedGradients + factor * other.tiedGradients,
                mirroredGradients + factor * other.mirroredGradients,
                outerGradients + factor * other.outerGradients);
    }
}
