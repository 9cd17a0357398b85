package dev.penstock.runtime.inference;

import dev.penstock.runtime.model.generation.InferenceStage;
import dev.penstock.runtime.model.shape.Feed;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Positions;
import java.util.ArrayList;
import java.util.List;

/**
 * The feeds of a text, slice by slice, until all its tokens are chosen. They follow from lengths
 * alone, so the whole order is known before the first token is. A context of 8, a prompt of 5,
 * slices of 4:
 *
 * <pre>
 *   tokens   0 1 2 3 | 4 | 5 | 6 | 7 |           the prompt, then one by one
 *                                 5 6 7 8 | 9 ..  the context is full: its newer half once more
 * </pre>
 *
 * <p>A full window continues with its newer half, fed again from position 0: where positions are
 * learned, keys of tokens that move to another position are void. Where they turn heads, only the
 * distance of two tokens counts: places go on, and the oldest keys are dropped instead.
 */
final class FeedPlan {
    private FeedPlan() {}

    /**
     * Returns the feeds of a text of a model, by its kind of positions.
     *
     * @param caches as of {@link #of(int, int, int, int, boolean)}
     */
    static List<Feed> of(ModelShape shape, int prompt, int count, int sliceTokens, boolean caches) {
        return switch (shape.positions()) {
            case Positions.Learned _ -> of(prompt, count, shape.context(), sliceTokens, caches);
            case Positions.Rotary _ ->
                    sliding(
                            prompt,
                            count,
                            shape.context(),
                            sliceTokens,
                            caches,
                            InferenceStage.grid(shape));
        };
    }

    /** Returns the maximum tokens whose keys and values a text of so many tokens keeps. */
    static int cachedTokens(ModelShape shape, int tokens) {
        return switch (shape.positions()) {
            case Positions.Learned _ -> Math.min(tokens, shape.context());
            case Positions.Rotary _ ->
                    Math.min(tokens, room(shape.context(), InferenceStage.grid(shape)));
        };
    }

    /** Room for as many keys to stay as go: none is moved onto another that stays. */
    private static int room(int context, int grid) {
        return 2 * (context + grid);
    }

    /**
     * Returns the feeds of a text whose window slides on with it, token by token: no token is fed
     * twice, and each sees the {@code context} tokens up to its own.
     *
     * @param grid oldest keys are dropped in multiples of it
     */
    static List<Feed> sliding(
            int prompt, int count, int context, int sliceTokens, boolean caches, int grid) {
        List<Feed> feeds = new ArrayList<>();
        int start = Math.max(0, prompt - context);
        int room = room(context, grid);
        int fed = start;
        int position = 0;
        for (int length = prompt; length < prompt + count; length++) {
            if (!caches) {
                fed = start;
                position = 0;
            }
            for (int from = fed; from < length; from += sliceTokens) {
                int tokens = Math.min(sliceTokens, length - from);
                int dropped = 0;
                if (caches && position + tokens > room) {
                    dropped = (position - (context - 1)) / grid * grid;
                    position -= dropped;
                }
                boolean chooses = from + tokens == length;
                feeds.add(new Feed(from, tokens, position, from - start, dropped, chooses));
                position += tokens;
            }
            fed = length;
        }
        return feeds;
    }

    /**
     * Returns the feeds of a text, in order.
     *
     * @param prompt tokens of the prompt, at least 1; of more than {@code context} only the last
     *     count
     * @param count tokens to choose, at least 1
     * @param sliceTokens maximum tokens of a feed
     * @param caches whether keys and values of earlier tokens are kept; otherwise every token feeds
     *     its whole window again, for comparison
     */
    static List<Feed> of(int prompt, int count, int context, int sliceTokens, boolean caches) {
        List<Feed> feeds = new ArrayList<>();
        int start = Math.max(0, prompt - context);
        int fed = start;
        for (int length = prompt; length < prompt + count; length++) {
            if (length - start > context) {
                start = length - Math.max(1, context / 2);
                fed = start;
            } else if (!caches) {
                fed = start;
            }
            for (int from = fed; from < length; from += sliceTokens) {
                int tokens = Math.min(sliceTokens, length - from);
                feeds.add(new Feed(from, tokens, from - start, from + tokens == length));
            }
            fed = length;
        }
        return feeds;
    }
}
