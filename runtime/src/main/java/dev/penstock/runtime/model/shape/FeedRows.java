package dev.penstock.runtime.model.shape;

import java.util.ArrayList;
import java.util.List;

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
     */
    public record Run(int text, int firstRow, Feed feed) {
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
     */
    public static FeedRows of(List<Integer> texts, List<Feed> feeds) {
        List<Run> runs = new ArrayList<>();
        int row = 0;
        for (int i = 0; i < texts.size(); i++) {
            runs.add(new Run(texts.get(i), row, feeds.get(i)));
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
