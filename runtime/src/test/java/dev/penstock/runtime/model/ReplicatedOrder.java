package dev.penstock.runtime.model;

import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.ForwardOnly;
import dev.penstock.schedules.lower.InsertParameterGathers;
import dev.penstock.schedules.lower.InsertReductions;
import dev.penstock.schedules.lower.LoweringOptions;
import java.util.List;

/** An order of computations with the gathers and reductions that its replicas need. */
record ReplicatedOrder(GptSettings settings, Schedule order) {
    Schedule training() {
        int stages = order.shape().stages();
        boolean shared = settings.shape().tied() && stages > 1;
        return InsertReductions.into(
                gathered(order),
                shared ? List.of(List.of(0, stages - 1)) : List.of(),
                options().reduction());
    }

    Schedule evaluation() {
        return gathered(ForwardOnly.of(order));
    }

    private Schedule gathered(Schedule computations) {
        return options()
                .gathers()
                .map(gathers -> InsertParameterGathers.into(computations, gathers))
                .orElse(computations);
    }

    private LoweringOptions options() {
        int holders = settings.grid().data() * settings.grid().context();
        return settings.zero()
                .lowering(
                        LoweringOptions.plain(),
                        holders,
                        order.shape().microBatches() * order.shape().slices());
    }
}
