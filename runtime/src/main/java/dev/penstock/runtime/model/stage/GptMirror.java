package dev.penstock.runtime.model.stage;

import dev.penstock.actors.spi.StageMirror;
import dev.penstock.actors.spi.TrainedState;
import dev.penstock.cuda.device.Device;
import dev.penstock.runtime.model.memory.StageScopes;
import dev.penstock.runtime.model.parameters.ParameterAllocator;
import dev.penstock.runtime.model.parameters.ParameterInit;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.parameters.StageParameters;
import dev.penstock.runtime.model.parameters.StageTrained;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.Sharding;
import dev.penstock.runtime.model.shape.StageRole;

/**
 * A second copy of a stage's trained parameters and their moments, updated by the same code as the
 * stage. It computes no matrix products, so it has no BF16 copies.
 */
final class GptMirror implements StageMirror {
    private final StageRole role;
    private final StageScopes scopes;
    private final StageTrained trained;
    private final StageOptimizer optimizer;

    private GptMirror(
            StageRole role, StageScopes scopes, StageTrained trained, StageOptimizer optimizer) {
        this.role = role;
        this.scopes = scopes;
        this.trained = trained;
        this.optimizer = optimizer;
    }

    /** Allocates and fills a mirror; frees what it allocated if that fails. */
    static GptMirror build(
            GptSettings settings,
            StageRole role,
            Sharding sharding,
            Device device,
            ParameterSource source) {
        StageScopes scopes =
                StageScopes.of(settings, device.memory(), "mirror of stage " + role.stage());
        try {
            StageParameters parameters = allocate(scopes, settings, role, sharding);
            new ParameterInit(source, settings.seed(), settings.shape().layers())
                    .fill(parameters, device.kernels());
            return new GptMirror(
                    role,
                    scopes,
                    new StageTrained(parameters.groups(), device.kernels(), () -> {}),
                    new StageOptimizer(device.kernels(), settings.optimizer(), parameters));
        } catch (RuntimeException e) {
            scopes.close();
            throw e;
        }
    }

    /** Returns parameters cut into the same groups and parts as the stage's. */
    static StageParameters allocate(
            StageScopes scopes, GptSettings settings, StageRole role, Sharding sharding) {
        return StageParameters.allocate(
                new ParameterAllocator(
                        scopes,
                        settings.precision(),
                        ParameterAllocator.Use.MIRROR,
                        sharding,
                        settings.fineTuning()),
                settings.shape(role),
                role);
    }

    @Override
    public int stage() {
        return role.stage();
    }

    @Override
    public int firstLayer() {
        return role.firstLayer();
    }

    @Override
    public int layers() {
        return role.layers();
    }

    @Override
    public TrainedState trained() {
        return trained;
    }

    @Override
    public void skipped(long steps) {
        optimizer.skipped(steps);
    }

    @Override
    public void update(long step, double clipFactor) {
        optimizer.update(step, clipFactor);
    }

    @Override
    public void close() {
        scopes.close();
    }
}
