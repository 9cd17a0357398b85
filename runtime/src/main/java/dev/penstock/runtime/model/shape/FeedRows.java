package dev.penstock.runtime.model.shape;

import java.util.ArrayList;
import java.util.List;
import java.util.function.IntUnaryOperator;

/**
 * The rows of a unit of inference: what each of its texts feeds, text after text. Products take all
 * rows at once and so read the weights once; positions and attention are separate for each text.
 *
 * <pre>
 *   two texts, one token each; the second text is longer      row       0  1
 *                                                           position  5  8
 * </pre>
 *
 * @param runs at least one
 */
public record FeedRows(List<Run> runs) {
    /**
     * The rows of one text.
     *
     * @param firstRow of the unit
     * @param keptFrom row of the kept keys and values at which those of this text begin
     */
    public record Run(int text, int firstRow, Feed feed, int keptFrom) {
        public int lastRow() {
            return firstRow + feed.count() - 1;
        }
    }

    public FeedRows {
        runs = List.copyOf(runs);
    }

    /**
     * Lays the feeds of several texts out as rows.
     *
     * @param texts the numbers of the texts
     * @param feeds entry i is the feed of entry i of {@code texts}
     * @param keptFrom where the keys and values of the text of a number are kept
     */
    public static FeedRows of(List<Integer> texts, List<Feed> feeds, IntUnaryOperator keptFrom) {
        List<Run> runs = new ArrayList<>();
        int row = 0;
        for (int i = 0; i < texts.size(); i++) {
            int text = texts.get(i);
            runs.add(new Run(text, row, feeds.get(i), keptFrom.applyAsInt(text)));
            row += feeds.get(i).count();
        }
        return new FeedRows(runs);
    }

    /** Returns the rows of all texts. */
    public int count() {
        return runs.getLast().lastRow() + 1;
    }

    public List<PartTokens.Run> places() {
        return runs.stream()
                .map(
                        run ->
                                new PartTokens.Run(
                                        run.firstRow(), run.feed().place(), run.feed().count()))
                .toList();
    }
}
