package dev.penstock.runtime.model.parameters;

import dev.penstock.cuda.device.DType;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;

/** Room for the gathered groups of all stages of a rank. */
public final class GatherPool {
    private final RowPool rows;
    private final Set<ParameterGroup> here = Collections.newSetFromMap(new IdentityHashMap<>());

    public GatherPool(RowPool rows) {
        this.rows = rows;
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
            of.bind(rows.take(kind, of.name()));
        }
        here.add(group);
    }

    void free(ParameterGroup group) {
        if (here.remove(group)) {
            for (RowPool.Kind kind : rowsOf(group)) {
                GroupBuffer of = kind.type() == DType.F32 ? group.weights() : group.factors();
                rows.giveBack(of.whole());
                of.unbind();
            }
        }
    }
}
