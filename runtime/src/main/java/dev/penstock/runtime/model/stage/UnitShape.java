package dev.penstock.runtime.model.stage;

import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.Workspace;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.HeadChunk;
import dev.penstock.runtime.model.shape.ShardShape;
import java.util.List;

/**
 * The size of a unit, and scratch of that size.
 *
 * @param ownRows of this shard
 * @param headChunks as which the last stage computes its logits
 * @param work scratch of a backward
 */
record UnitShape(TokenBlocks blocks, int ownRows, List<HeadChunk> headChunks, Workspace work) {
    /**
     * @param logitsRows room for logits
     * @param largest scratch for the largest unit
     */
    static UnitShape of(
            BatchShape batch, int slice, ShardShape shape, int logitsRows, Workspace largest) {
        TokenBlocks blocks = batch.blocks(slice);
        int own = shape.ownRows(blocks.rows());
        return new UnitShape(
                blocks,
                own,
                HeadChunk.of(blocks, logitsRows, batch.logits()),
                largest.first(blocks.rows(), own));
    }
}
