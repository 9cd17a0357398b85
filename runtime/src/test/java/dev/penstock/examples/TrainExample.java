package dev.penstock.examples;

import dev.penstock.Penstock;
import dev.penstock.TrainingEnd;
import dev.penstock.TrainingListener;
import dev.penstock.TrainingStep;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.Map;

/** Trains, and continues. */
final class TrainExample {
    private TrainExample() {}

    static TrainingEnd run(Path texts, Path runDirectory, PrintStream out) {
        // @start region="example"
        Penstock description =
                Penstock.of(Map.of("model.width", 32, "model.layers", 2, "model.heads", 2))
                        .with("model.context", 32)
                        .with("data.source", texts)
                        .with("run.steps", 4)
                        .in(runDirectory);
        TrainingEnd end =
                description.train(
                        new TrainingListener() {
                            @Override
                            public void onStep(TrainingStep step) {
                                out.printf("step %d: loss %.3f%n", step.step(), step.loss());
                            }
                        });
        out.println("saved in " + end.checkpoint().orElseThrow());

        TrainingEnd later = description.with("run.steps", 6).resume();
        out.println("went on to step " + later.step());
        // @end
        return later;
    }
}
