package dev.penstock.examples;

import dev.penstock.Generated;
import dev.penstock.Generation;
import dev.penstock.Measured;
import dev.penstock.Model;
import dev.penstock.Penstock;
import java.io.PrintStream;
import java.nio.file.Path;

/** Uses a trained model. */
final class GenerateExample {
    private GenerateExample() {}

    static void run(Path runDirectory, Path otherTexts, PrintStream out) {
        // @start region="example"
        try (Model model = Penstock.open(runDirectory)) {
            Generated text =
                    model.generate("the river ", Generation.of(20).temperature(0.8).seed(7));
            out.println(text.text());

            Measured measured = model.evaluate(otherTexts);
            out.println("perplexity " + measured.figure("perplexity"));
        }
        // @end
    }
}
