package dev.penstock.runtime.evaluation;

import dev.penstock.runtime.tokenizer.Tokenizer;
import java.util.Arrays;

/**
 * A context and what is to be guessed after it, as lm-evaluation-harness encodes them: together,
 * with blanks at the end of the context moved to the target, for tokens begin with their blanks.
 *
 * @param context tokens; that which begins a text where there is none
 * @param target tokens
 */
record ContextAndTarget(int[] context, int[] target) {
    static ContextAndTarget of(Tokenizer tokenizer, String context, String target) {
        String kept = Whitespace.stripEnd(context);
        String guessed = context.substring(kept.length()) + target;
        int[] all = tokenizer.encode(kept + guessed);
        if (kept.isEmpty()) {
            return new ContextAndTarget(new int[] {tokenizer.textStart()}, all);
        }
        int[] before = tokenizer.encode(kept);
        int length = Math.min(before.length, all.length);
        return new ContextAndTarget(before, Arrays.copyOfRange(all, length, all.length));
    }

    /**
     * Notes a target of no token, or of more than a model has places for; returns whether it is
     * good.
     */
    boolean check(TaskFiles reader, String at, int context) {
        boolean good = target.length >= 1 && target.length <= context;
        if (!good) {
            reader.wrong(
                    at,
                    "1 to %d tokens to guess, the model's context".formatted(context),
                    "" + target.length);
        }
        return good;
    }
}
