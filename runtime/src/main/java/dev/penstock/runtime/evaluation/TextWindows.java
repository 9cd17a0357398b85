package dev.penstock.runtime.evaluation;

import java.util.ArrayList;
import java.util.List;

/** Cuts rows of tokens into windows in which every token but the first is a target once. */
final class TextWindows {
    private TextWindows() {}

    /**
     * Windows of Megatron-LM, that begin every {@code stride} tokens; all but the first count their
     * last {@code stride} places alone. A context of 4, a stride of 2:
     *
     * <pre>
     *   tokens   0 1 2 3 4 5 6 7
     *   reads    0 1 2 3             guesses 1 2 3 4
     *                2 3 4 5         guesses     5 6
     *                    4 5 6       guesses       7
     * </pre>
     *
     * @param stride 1 to {@code context}
     */
    static List<Window> overlapping(int[] tokens, int context, int stride) {
        List<Window> windows = new ArrayList<>();
        int last = tokens.length - 1;
        for (int start = 0, guessed = 0; guessed < last; start += stride) {
            int end = Math.min(start + context, last);
            windows.add(new Window(tokens, start, end - start + 1, end - guessed));
            guessed = end;
        }
        return windows;
    }

    /**
     * Windows of lm-evaluation-harness: the first token, which begins the text, is no target; the
     * windows' targets follow each other, and the last window is whole, with fewer targets.
     *
     * <pre>
     *   tokens   0 1 2 3 4 5 6
     *   reads    0 1 2 3             guesses 1 2 3 4
     *                2 3 4 5         guesses     5 6
     * </pre>
     */
    static List<Window> rolling(int[] tokens, int context) {
        List<Window> windows = new ArrayList<>();
        int last = tokens.length - 1;
        for (int guessed = 0; guessed < last; ) {
            int end = Math.min(guessed + context, last);
            int start = Math.max(0, end - context);
            windows.add(new Window(tokens, start, end - start + 1, end - guessed));
            guessed = end;
        }
        return windows;
    }

    /**
     * One window for the end of a text; of one that is too long, its last part.
     *
     * @return empty if there is nothing before the targets, and not more than one of these
     */
    static List<Window> ending(int[] before, int[] targets, int context) {
        int[] row = new int[before.length + targets.length];
        System.arraycopy(before, 0, row, 0, before.length);
        System.arraycopy(targets, 0, row, before.length, targets.length);
        int from = Math.max(0, row.length - context - 1);
        int count = row.length - from;
        return count < 2
                ? List.of()
                : List.of(new Window(row, from, count, Math.min(targets.length, count - 1)));
    }
}
