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
 * Products on q x q x q shards (arXiv 2105.14450, section 3.1): X is gathered along one axis and W
 * along another; what their product lacks is summed along the third. The next product, back to the
 * stream, has the roles of j and l changed:
 *
 * <pre>
 *   inward    rows of X over j, rows of W over i;  Y[il][j] is the sum of X[i][l] W[l][j] over l
 *   outward   rows of X over l, rows of W over i;  Y[ij][l] is the sum of X[i][j] W[j][l] over j
 * </pre>
 */
final class CubeProduct implements MeshProduct {
    private final Kernels kernels;
    private final MeshShards mesh;
    private final int side;
    private final int vocabulary;
    private final int axisOfX;
    private final int axisOfY;

    CubeProduct(Kernels kernels, MeshShards mesh, int side, int vocabulary, boolean inward) {
        this.kernels = kernels;
        this.mesh = mesh;
        this.side = side;
        this.vocabulary = vocabulary;
        axisOfX = inward ? TensorMesh.ALONG : TensorMesh.THROUGH;
        axisOfY = inward ? TensorMesh.THROUGH : TensorMesh.ALONG;
    }

    @Override
    public void multiply(Tensor x, Tensor w, Tensor y) {
        Tensor allX = gather(axisOfX, x, mesh.rows(side * x.rows(), x.columns()));
        Tensor sums = mesh.otherRows(side * y.rows(), y.columns());
        kernels.gemm(DType.F32, false, allX, false, matrix(w), sums, false);
        kernels.copy(scatter(axisOfY, sums), y);
    }

    @Override
    public void backwardInput(Tensor dy, Tensor w, Tensor dx) {
        Tensor allDy = gather(axisOfY, dy, mesh.rows(side * dy.rows(), dy.columns()));
        Tensor sums = mesh.otherRows(side * dx.rows(), dx.columns());
        kernels.gemm(DType.F32, false, allDy, true, matrix(w), sums, false);
        kernels.copy(scatter(axisOfX, sums), dx);
    }

    @Override
    public void backwardWeight(Tensor x, Tensor dy, Tensor dw, TokenBlocks blocks) {
        Tensor allX = gather(axisOfX, x, mesh.rows(side * x.rows(), x.columns()));
        Tensor allDy = gather(axisOfY, dy, mesh.otherRows(side * dy.rows(), dy.columns()));
        Tensor sums = mesh.block(side * dw.rows(), dw.columns());
        kernels.zero(sums);
        kernels.weightGradient(DType.F32, allX, allDy, sums, all(blocks));
        kernels.add(scatter(TensorMesh.DOWN, sums), dw);
    }

    @Override
    public void embed(Tensor tokens, Tensor table, Tensor y) {
        Tensor all = gatherTokens(tokens);
        Tensor sums = mesh.otherRows(side * y.rows(), y.columns());
        Tensor found = matrix(table);
        kernels.embedding(all, tokensOf(found), found, sums);
        kernels.copy(scatter(axisOfY, sums), y);
    }

    @Override
    public void embedBackward(Tensor dy, Tensor tokens, Tensor dTable, TokenBlocks blocks) {
        Tensor all = gatherTokens(tokens);
        Tensor allDy = gather(axisOfY, dy, mesh.otherRows(side * dy.rows(), dy.columns()));
        Tensor sums = mesh.block(side * dTable.rows(), dTable.columns());
        kernels.zero(sums);
        kernels.embeddingBackward(allDy, all, tokensOf(sums), sums, all(blocks));
        kernels.add(scatter(TensorMesh.DOWN, sums), dTable);
    }

    /** Tokens belong to rows of the stream, which are those of y. */
    private Tensor gatherTokens(Tensor tokens) {
        Tensor room = mesh.rows(1, side * tokens.columns());
        var indices =
                new Tensor(
                        room.buffer(),
                        room.offsetBytes(),
                        DType.I32,
                        side,
                        tokens.columns(),
                        tokens.columns());
        Tensor all = gather(axisOfY, tokens, indices);
        return new Tensor(
                all.buffer(), all.offsetBytes(), DType.I32, 1, room.columns(), room.columns());
    }

    private TokenRange tokensOf(Tensor table) {
        return new TokenRange(mesh.at(TensorMesh.ALONG) * table.rows(), vocabulary);
    }

    private TokenBlocks all(TokenBlocks blocks) {
        return new TokenBlocks(
                side * blocks.sequences(), blocks.tokens(), blocks.firstToken(), blocks.grid());
    }

    private Tensor matrix(Tensor w) {
        return gather(TensorMesh.DOWN, w, mesh.block(side * w.rows(), w.columns()));
    }

    private Tensor gather(int axis, Tensor own, Tensor room) {
        kernels.copy(own, part(axis, room));
        CollectiveGroup line = mesh.group(axis);
        line.await(line.allGather(room, parts(room)));
        return room;
    }

    /** Returns this shard's rows of the sums. */
    private Tensor scatter(int axis, Tensor sums) {
        CollectiveGroup line = mesh.group(axis);
        line.await(line.reduceScatter(sums, parts(sums)));
        return part(axis, sums);
    }

    private Tensor part(int axis, Tensor whole) {
        int rows = whole.rows() / side;
        return whole.rows(mesh.at(axis) * rows, rows);
    }

    private ShardMap parts(Tensor whole) {
        return new ShardMap(whole.elements(), side, whole.elements() / side);
    }
}
