package dev.penstock.runtime.model.shape;

import dev.penstock.cuda.device.RowCodec;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.stream.IntStream;

/**
 * How replicas that take steps alone are brought together: every {@code every} steps an outer
 * optimizer is applied to the mean over replicas of how far they have come since the last time
 * (DiLoCo, arXiv 2311.08105, algorithm 1). The layers are cut into fragments, which have their
 * turns one after another (Streaming DiLoCo, arXiv 2501.18512, algorithm 2).
 *
 * <pre>
 *   D  = anchor - parameters          of each replica, at the end of step t
 *   D' = mean of D over replicas      while steps t + 1 to t + lag are taken
 *   v  = momentum v + D'
 *   anchor     -= learning rate x (D' + momentum v)      Nesterov; otherwise x v
 *   parameters  = mixing parameters + (1 - mixing) anchor      at the end of step t + lag
 * </pre>
 *
 * @param every steps between two turns of a fragment
 * @param lag steps that are taken while the mean is formed; less than lie between two turns
 * @param fragments layer l belongs to fragment l modulo this, tables to the first one and the head
 *     to the last
 * @param nesterov whether the step looks ahead
 * @param mixing share of a replica's own parameters that stay; no effect without a lag, as then
 *     none do
 * @param codec in which form D travels; empty: as it is
 * @param after steps before all of this, in which replicas sum gradients and stay equal (Lin et
 *     al., post-local SGD, arXiv 1808.07217): the anchors are what is then reached
 */
public record OuterSettings(
        int every,
        int lag,
        int fragments,
        boolean nesterov,
        double learningRate,
        double momentum,
        double mixing,
        Optional<RowCodec> codec,
        int after) {
    /** Elements that have one scale where they are coded. */
    public static final int ROW = 256;

    public OuterSettings {
        if (every < 1 || fragments < 1 || fragments > every || lag < 0 || after < 0) {
            throw new IllegalArgumentException(
                    "expected 1 to %d fragments, one or more steps between turns, a lag of 0 or more and 0 or more steps before, got %d fragments, %d steps, lag %d, %d steps"
                            .formatted(every, fragments, every, lag, after));
        }
        if (lag >= every / fragments) {
            throw new IllegalArgumentException(
                    "expected a lag of less than the %d steps between two turns, got %d"
                            .formatted(every / fragments, lag));
        }
    }

    /** Returns the fragment of a layer of the model. */
    public int ofLayer(int layer) {
        return layer % fragments;
    }

    /** Returns the fragment of the tables of tokens and positions. */
    public int ofTables() {
        return 0;
    }

    /** Returns the fragment of the final norm and of a matrix of the logits that is not tied. */
    public int ofHead() {
        return fragments - 1;
    }

    /** Returns whether replicas sum their gradients in a step, so that they are equal after it. */
    public boolean sumsIn(long step) {
        return step <= after;
    }

    /** Returns the fragment whose turn it is at the end of a step, if it is any one's. */
    public OptionalInt at(long step) {
        long alone = step - after;
        return alone < every
                ? OptionalInt.empty()
                : IntStream.range(0, fragments)
                        .filter(fragment -> alone % every == offset(fragment))
                        .findFirst();
    }

    /** Returns the last step up to this one that was a fragment's turn. */
    public long lastTurn(int fragment, long upTo) {
        return upTo - Math.floorMod(upTo - after - offset(fragment), (long) every);
    }

    /** Returns whether the outer optimizer is applied between this step and the next one. */
    public boolean appliesBehind(long step) {
        return at(step - lag).isPresent();
    }

    private int offset(int fragment) {
        return (int) ((long) fragment * every / fragments);
    }

    /**
     * Returns the bytes that outer parameters, their momentum, and the exchange of a fragment of
     * equal ones take.
     *
     * @param trained elements that are trained
     */
    public long bytes(long trained, int replicas) {
        long whole = trained * (momentum == 0 ? 1 : 2);
        long fragment = Math.ceilDiv(trained, (long) fragments);
        long exchanged = 2 * fragment;
        long coded = codec.map(c -> fragment + replicas * fragment * c.words(ROW) / ROW).orElse(0L);
        return Float.BYTES * (whole + exchanged + coded);
    }

    /** Returns the share of a replica's own parameters that stay. */
    public double ownShare() {
        return lag == 0 ? 0 : mixing;
    }
}
