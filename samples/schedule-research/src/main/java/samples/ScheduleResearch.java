package samples;

import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.render.GridColors;
import dev.penstock.schedules.render.ScheduleGrid;
import dev.penstock.schedules.render.ScheduleSvg;
import dev.penstock.schedules.render.TimelinePanel;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Writes an order, proves it, simulates it and draws it. */
public final class ScheduleResearch {
    private ScheduleResearch() {}

    public static void main(String[] arguments) throws IOException {
        var order =
                ScheduleText.parse(
                        """
                        schedule: mine
                        ranks: 2
                        micro-batches: 4
                        rank 0: 0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3
                        rank 1: 1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3
                        """);
        var proof = ScheduleValidator.validate(Lowering.lower(order)).orThrow();
        System.out.println(proof.describe());

        var timeline = ScheduleSimulator.simulate(order, CostModel.of(10, 21, 1));
        System.out.printf("bubble %.1f %%%n", 100 * timeline.bubble().bubbleShare());
        System.out.print(ScheduleGrid.order(order, GridColors.NONE));
        Path picture = Path.of(arguments[0]);
        Files.writeString(picture, ScheduleSvg.draw(TimelinePanel.units("mine", timeline)));
    }
}
