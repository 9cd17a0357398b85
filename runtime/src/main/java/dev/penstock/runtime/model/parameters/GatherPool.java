package dev.penstock.runtime.model.parameters;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Tensor;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;

/** Room for the gathered groups of all stages of a rank. */
public final class GatherPool {
    /** Where rows of groups come from. */
    private interface Room {
        Tensor take(ParameterGroup group, RowPool.Kind kind, String what);

        void giveBack(ParameterGroup group, Tensor row);
    }

    private final Room room;
    private final Set<ParameterGroup> here = Collections.newSetFromMap(new IdentityHashMap<>());

    /** A pool of rows that any group of their size may take. */
    public GatherPool(RowPool rows) {
        room =
                new Room() {
                    @Override
                    public Tensor take(ParameterGroup group, RowPool.Kind kind, String what) {
                        return rows.take(kind, what);
                    }

                    @Override
                    public void giveBack(ParameterGroup group, Tensor row) {
                        rows.giveBack(row);
                    }
                };
    }

    /** A pool for two stages at a time. */
    public GatherPool(NeighbourRoom rows) {
        room =
                new Room() {
                    @Override
                    public Tensor take(ParameterGroup group, RowPool.Kind kind, String what) {
                        return rows.take(group, kind, what);
                    }

                    @Override
                    public void giveBack(ParameterGroup group, Tensor row) {
                        rows.giveBack(group);
                    }
                };
    }

    /**
     * Returns the rows that a group takes while it is gathered; none if every rank has it whole.
     */
    public static List<RowPool.Kind> rowsOf(ParameterGroup group) {
        List<RowPool.Kind> kinds = new ArrayList<>();
        if (!group.sharding().parameters()) {
            return kinds;
        }
        if (group.readsWeights() || group.sharding().swapped()) {
            kinds.add(new RowPool.Kind(DType.F32, group.elements()));
        }
        if (group.hasCopies()) {
            kinds.add(new RowPool.Kind(group.copyType(), group.elements()));
        }
        return kinds;
    }

    void bind(ParameterGroup group) {
        for (RowPool.Kind kind : rowsOf(group)) {
            GroupBuffer of = kind.type() == DType.F32 ? group.weights() : group.factors();
            of.bind(room.take(group, kind, of.name()));
        }
        here.add(group);
    }

    void free(ParameterGroup group) {
        if (here.remove(group)) {
            for (RowPool.Kind kind : rowsOf(group)) {
                GroupBuffer of = kind.type() == DType.F32 ? group.weights() : group.factors();
                room.giveBack(group, of.whole());
                of.unbind();
            }
        }
    }
}
