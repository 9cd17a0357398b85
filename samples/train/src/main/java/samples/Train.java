package samples;

import dev.penstock.Generation;
import dev.penstock.Penstock;
import dev.penstock.TrainingListener;
import dev.penstock.TrainingStep;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Trains a tiny model on a text, continues the training, and lets the model write. */
public final class Train {
    private Train() {}

    public static void main(String[] arguments) throws IOException {
        Path text = Files.createTempFile("text", ".txt");
        Files.writeString(text, "the valve opens and the river flows under the gate.\n".repeat(400));
        var training =
                Penstock.ofText("model { context = 64, width = 64, layers = 2, heads = 2 }")
                        .with("data.source", text)
                        .with("pipeline.stages", 2)
                        .with("optimizer.learning-rate", 5e-3)
                        .with("optimizer.warmup-steps", 5)
                        .with("run.directory", Path.of(arguments[0]));
        var printing =
                new TrainingListener() {
                    @Override
                    public void onStep(TrainingStep step) {
                        System.out.printf("step %d: loss %.3f%n", step.step(), step.loss());
                    }
                };
        training.with("run.steps", 30).train(printing);
        var end = training.with("run.steps", 40).resume(printing);
        try (var model = Penstock.open(end.directory())) {
            System.out.println(model.generate("the valve ", Generation.greedy(40)).text());
        }
    }
}
