package dev.penstock.runtime.cluster;

import dev.penstock.actors.cluster.RunRefusedException;
import dev.penstock.actors.dataplane.FrameFaults;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.runtime.chat.ChatTemplate;
import dev.penstock.runtime.chat.TemplateException;
import dev.penstock.runtime.checkpoint.DurableFiles;
import dev.penstock.runtime.config.run.DataPlaneSection;
import dev.penstock.runtime.inference.ApartPipeline;
import dev.penstock.runtime.inference.TrainedModel;
import dev.penstock.runtime.launch.ConfiguredDataPlane;
import dev.penstock.runtime.safetensors.Sha256;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.serve.ServedModel;
import dev.penstock.runtime.tokenizer.Tokenizer;
import dev.penstock.runtime.tokenizer.TokenizerFileException;
import java.io.IOException;
import java.io.StringReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.Properties;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the seed and every node make of a model that is served: the model itself, and the plan that
 * all must agree on.
 *
 * @param model closed with these parts
 */
record ServingParts(ServeOrder order, TrainedModel model, ApartPipeline pipeline, RunPlan plan)
        implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ServingParts.class);
    private static final String ORDER = "serving.properties";
    private static final String ID = "serving-id.properties";

    /**
     * Opens the model.
     *
     * @param runId of this serving
     * @throws RunRefusedException if this machine does not see it, or it cannot be cut like that
     */
    static ServingParts open(ServeOrder order, String runId) {
        TrainedModel model;
        try {
            model = TrainedModel.openForText(order.model(), LOG::warn);
        } catch (StoredFileException e) {
            throw new RunRefusedException(
                    "%s; all nodes must see the model under the same path, for example over NFS"
                            .formatted(e.getMessage()),
                    e);
        }
        try {
            var pipeline =
                    new ApartPipeline(model.shape(), order.ranks(), order.held(), order.limits());
            int most = ApartPipeline.mostRanks(model.shape());
            if (order.ranks() < 1 || order.ranks() > most) {
                throw new RunRefusedException(
                        "--stages: expected 1 to %d for a model of %d layers, got %d"
                                .formatted(most, model.shape().layers(), order.ranks()));
            }
            String hash = Sha256.of(order.hash() + ModelFiles.fingerprint(model));
            return new ServingParts(order, model, pipeline, pipeline.plan(runId, hash));
        } catch (RuntimeException e) {
            model.close();
            throw e;
        }
    }

    /** Leaves in a directory what nodes open the same from. */
    void write(Path directory) throws IOException {
        DurableFiles.write(directory.resolve(ORDER), order.text());
        DurableFiles.write(directory.resolve(ID), "id=" + plan.runId() + "\n");
    }

    /** Whether a directory is of a model that is served. */
    static boolean areIn(Path directory) {
        return Files.exists(directory.resolve(ID));
    }

    /**
     * Opens what a seed has written.
     *
     * @throws RunRefusedException if it cannot be opened
     */
    static ServingParts read(Path directory) {
        try {
            var id = new Properties();
            id.load(new StringReader(Files.readString(directory.resolve(ID))));
            return open(
                    ServeOrder.parse(Files.readString(directory.resolve(ORDER))),
                    id.getProperty("id", ""));
        } catch (IOException e) {
            throw new RunRefusedException(
                    "cannot read %s: %s".formatted(directory, e.getMessage()), e);
        }
    }

    /** Returns the model as requests see it. */
    ServedModel served() {
        try {
            Optional<Path> files =
                    Optional.of(order.tokenizer())
                            .filter(named -> !Tokenizer.names().contains(named))
                            .map(Path::of);
            return new ServedModel(
                    order.name(),
                    Tokenizer.open(order.tokenizer()),
                    model.shape().vocabulary(),
                    model.shape().context(),
                    order.limits().tokens(),
                    ChatTemplate.of(order.template(), files.orElse(null)));
        } catch (TokenizerFileException | TemplateException e) {
            throw new RunRefusedException(
                    "%s; all nodes must see the tokenizer under the same path"
                            .formatted(e.getMessage()),
                    e);
        }
    }

    /** Returns how tensors travel between the ranks. */
    ConfiguredDataPlane dataPlane() {
        return new ConfiguredDataPlane(
                DataPlaneSection.usual(order.dataPort()), plan.runId(), FrameFaults.NONE);
    }

    @Override
    public void close() {
        model.close();
    }
}
