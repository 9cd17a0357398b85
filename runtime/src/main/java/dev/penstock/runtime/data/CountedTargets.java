package dev.penstock.runtime.data;

import java.util.ArrayList;
import java.util.List;

/**
 * Of how much of its data a run that counts only some targets learns.
 *
 * @param chats of all data; 0 of what is not chats
 * @param silentChats those without an answer
 * @param targets of the part to train on that count
 * @param rows of the part to train on
 * @param silentRows those without a target that counts
 * @param reached whether any row that the run reads has one
 */
public record CountedTargets(
        long chats, long silentChats, long targets, long rows, long silentRows, boolean reached) {
    private static final int MANY_CHATS = 10;
    private static final int MANY_ROWS = 2;

    /** Returns what is unusual, for people. */
    public List<String> notes() {
        List<String> notes = new ArrayList<>();
        if (silentChats * MANY_CHATS > chats) {
            notes.add(
                    "%,d of %,d chats have no answer (role assistant), and nothing is learned of them"
                            .formatted(silentChats, chats));
        }
        if (silentRows * MANY_ROWS > rows) {
            notes.add(
                    "%,d of %,d rows have no target that counts: a step that has only such rows has loss 0 and no gradients; try shorter texts or a larger model.context"
                            .formatted(silentRows, rows));
        }
        return notes;
    }
}
