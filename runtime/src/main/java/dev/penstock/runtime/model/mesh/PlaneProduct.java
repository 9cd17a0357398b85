package dev.penstock.runtime.model.mesh;

import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;

/**
 * SUMMA (van de Geijn and Watts, 1997) as Optimus uses it (arXiv 2104.05343, algorithms 1 to 3) on
 * q x q shards, one block of each factor at a time:
 *
 * <pre>
 *   Y = X W        for l: X[i][l] to all of row i, W[l][j] to all of column j;  Y[i][j] += X[i][l] W[l][j]
 *   dX = dY W^T    for l: W[l][j] to all of column j;  the sum of dY[i][j] W[l][j]^T over row i to its shard l
 *   dW = X^T dY    for l: X[i][l] to all of row i;  the sum of X[i][l]^T dY[i][j] over column j to its shard l
 * </pre>
 */
final class PlaneProduct implements MeshProduct {
    private final Kernels kernels;
    private final MeshShards mesh;
    private final int side;
    private final int vocabulary;

    PlaneProduct(Kernels kernels, MeshShards mesh, int side, int vocabulary) {
        this.kernels = kernels;
        this.mesh = mesh;
        this.side = side;
        this.vocabulary = vocabulary;
    }

    @Override
    public void multiply(Tensor x, Tensor w, Tensor y) {
        for (int l = 0; l < side; l++) {
            Tensor factor = broadcast(TensorMesh.ALONG, l, x, mesh.rows(x.rows(), x.columns()));
            Tensor block = broadcast(TensorMesh.DOWN, l, w, mesh.block(w.rows(), w.columns()));
            kernels.gemm(DType.F32, false, factor, false, block, y, l > 0);
        }
    }

    @Override
    public void backwardInput(Tensor dy, Tensor w, Tensor dx) {
        Tensor room = mesh.rows(dx.rows(), dx.columns());
        for (int l = 0; l < side; l++) {
            Tensor block = broadcast(TensorMesh.DOWN, l, w, mesh.block(w.rows(), w.columns()));
            Tensor addend = mesh.at(TensorMesh.ALONG) == l ? dx : room;
            kernels.gemm(DType.F32, false, dy, true, block, addend, false);
            sumTo(TensorMesh.ALONG, l, addend);
        }
    }

    @Override
    public void backwardWeight(Tensor x, Tensor dy, Tensor dw, TokenBlocks blocks) {
        Tensor addend = mesh.block(dw.rows(), dw.columns());
        for (int l = 0; l < side; l++) {
            Tensor factor = broadcast(TensorMesh.ALONG, l, x, mesh.rows(x.rows(), x.columns()));
            kernels.zero(addend);
            kernels.weightGradient(DType.F32, factor, dy, addend, blocks);
            addUpTo(l, addend, dw);
        }
    }

    @Override
    public void embed(Tensor tokens, Tensor table, Tensor y) {
        Tensor room = mesh.rows(y.rows(), y.columns());
        for (int l = 0; l < side; l++) {
            Tensor block =
                    broadcast(TensorMesh.DOWN, l, table, mesh.block(table.rows(), table.columns()));
            Tensor found = l == 0 ? y : room;
            kernels.embedding(tokens, tokensOf(l, table), block, found);
            if (l > 0) {
                kernels.add(found, y); // zeros but for the rows that are found here
            }
        }
    }

    @Override
    public void embedBackward(Tensor dy, Tensor tokens, Tensor dTable, TokenBlocks blocks) {
        Tensor addend = mesh.block(dTable.rows(), dTable.columns());
        for (int l = 0; l < side; l++) {
            kernels.zero(addend);
            kernels.embeddingBackward(dy, tokens, tokensOf(l, dTable), addend, blocks);
            addUpTo(l, addend, dTable);
        }
    }

    private TokenRange tokensOf(int l, Tensor table) {
        return new TokenRange(l * table.rows(), vocabulary);
    }

    private void addUpTo(int l, Tensor addend, Tensor gradient) {
        sumTo(TensorMesh.DOWN, l, addend);
        if (mesh.at(TensorMesh.DOWN) == l) {
            kernels.add(addend, gradient);
        }
    }

    /** Returns what the l-th shard of this one's line has: its own, or the room after it came. */
    private Tensor broadcast(int axis, int l, Tensor own, Tensor room) {
        Tensor here = mesh.at(axis) == l ? own : room;
        CollectiveGroup line = mesh.group(axis);
        line.await(line.allGather(here, ShardMap.of(l, here.elements(), side)));
        return here;
    }

    private void sumTo(int axis, int l, Tensor addend) {
        CollectiveGroup line = mesh.group(axis);
        line.await(line.reduceScatter(addend, ShardMap.of(l, addend.elements(), side)));
    }
}
