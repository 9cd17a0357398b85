package dev.penstock.actors.dataplane;

import dev.penstock.cuda.device.RowCodec;
import java.util.Optional;

/**
 * In which form boundary tensors travel between ranks. What a stage hands to another stage of its
 * own rank travels nowhere and keeps its bits.
 *
 * @param activations of activations; empty: as they are
 * @param gradients of their gradients; empty: as they are
 * @param fromStage links from this stage on are coded: of stages k and k + 1 where k is this or
 *     more
 * @param errorFeedback whether what coded gradients lose is added to those of the next step
 * @param deltaRows rows of the data, from the first on, of which coded activations travel as deltas
 *     from those of their last visit; 0: none
 */
public record ChannelCodecs(
        Optional<RowCodec> activations,
        Optional<RowCodec> gradients,
        int fromStage,
        boolean errorFeedback,
        int deltaRows) {
    /** All tensors travel as they are. */
    public static final ChannelCodecs NONE =
            new ChannelCodecs(Optional.empty(), Optional.empty(), 0, false, 0);

    /** Returns how tensors of a channel travel; empty: as they are. */
    public Optional<RowCodec> of(ChannelKey channel) {
        if (Math.min(channel.fromStage(), channel.stage()) < fromStage) {
            return Optional.empty();
        }
        return switch (channel.kind()) {
            case ACTIVATION -> activations;
            case GRADIENT -> gradients;
            case SHARED_GRADIENT, MIRROR, COLLECTIVE -> Optional.empty();
        };
    }

    /** Whether what a channel's tensors lose is kept for those of the next step. */
    public boolean feedsBack(ChannelKey channel) {
        return errorFeedback && channel.kind() == FrameKind.GRADIENT && of(channel).isPresent();
    }

    /** Whether a channel carries deltas. */
    public boolean carriesDeltas(ChannelKey channel) {
        return deltaRows > 0 && channel.kind() == FrameKind.ACTIVATION && of(channel).isPresent();
    }

    /** Whether ends of links may keep something from step to step, each rank its own. */
    public boolean keeps() {
        return errorFeedback || deltaRows > 0;
    }

    /** Returns the bytes of a tensor on its way. */
    public long bytes(ChannelKey channel, int rows, int columns) {
        int words = of(channel).map(codec -> codec.words(columns)).orElse(columns);
        return (long) rows * words * Integer.BYTES;
    }
}
