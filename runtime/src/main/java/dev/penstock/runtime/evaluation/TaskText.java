package dev.penstock.runtime.evaluation;

import java.util.List;
import java.util.function.BiConsumer;

/**
 * One text of a task: a file, a page, a passage or a question.
 *
 * @param file index of the file that it is from
 * @param windows what is to be scored of it; none where there is nothing to guess
 * @param add adds it to a tally, given one score for each window
 */
record TaskText(int file, List<Window> windows, BiConsumer<Tally, List<Score>> add) {
    TaskText {
        windows = List.copyOf(windows);
    }
}
