package dev.penstock.actors.rank;

import dev.penstock.actors.spi.StageMirror;
import dev.penstock.actors.spi.StageProgram;

/**
 * A stage whose ends of coded links keep something: a rank's own one, or one that is mirrored.
 *
 * @param stage global index
 * @param layers from the first one on
 * @param boundaries has boundary tensors of the same sizes: the stage itself, or for a mirror one
 *     of the stages of the rank that holds it, since the tensors between all stages are alike
 */
record CodedStage(int stage, int firstLayer, int layers, StageProgram boundaries) {
    static CodedStage of(StageProgram own) {
        return new CodedStage(own.stage(), own.firstLayer(), own.layers(), own);
    }

    static CodedStage of(StageMirror mirror, StageProgram holders) {
        return new CodedStage(mirror.stage(), mirror.firstLayer(), mirror.layers(), holders);
    }

    /** Where each slice begins in the row of a sequence's tokens, and where the last one ends. */
    int[] columns(int slices) {
        int[] columns = new int[slices + 1];
        for (int slice = 0; slice < slices; slice++) {
            int elements = boundaries.boundaryRows(slice) * boundaries.boundaryColumns();
            columns[slice + 1] = columns[slice] + elements / boundaries.boundarySequences();
        }
        return columns;
    }
}
