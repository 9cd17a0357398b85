package dev.penstock.runtime.model.memory;

import dev.penstock.actors.spi.MemoryUse;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.StageMemory;
import dev.penstock.runtime.model.shape.SwapSettings;
import dev.penstock.runtime.model.swap.CountedSwap;
import dev.penstock.runtime.model.swap.SwapFolder;
import dev.penstock.runtime.model.swap.SwapSpace;
import dev.penstock.runtime.model.swap.SwapState;
import java.nio.file.Path;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** The memory of a stage by use, so that reports can distinguish the uses. */
public final class StageScopes implements AutoCloseable {
    private final DeviceScope whole;
    private final DeviceScope parameters;
    private final DeviceScope gradients;
    private final DeviceScope optimizer;
    private final DeviceScope activations;
    private final DeviceScope keyValues;
    private final DeviceScope scratch;
    private final DeviceScope gathered;
    private final DeviceScope accumulators;
    private final @Nullable DeviceScope offloaded;
    private final @Nullable Function<DeviceScope, SwapSpace> swapped;
    private final DeviceScope host;
    private @Nullable SwapSpace swap;
    private @Nullable DeviceScope shared;

    /** Opens a scope of this name and its parts below {@code parent}. */
    public StageScopes(DeviceScope parent, String name) {
        this(parent, name, null, new HostScope(MemoryUse.HOST_ACTIVATIONS));
    }

    /** Scopes in a device's memory, and in the folder that the settings name. */
    public static StageScopes of(GptSettings settings, DeviceScope parent, String name) {
        return new StageScopes(
                parent,
                name,
                settings.zero()
                        .offload()
                        .map(
                                folder ->
                                        new MappedScope(
                                                name + ", offloaded",
                                                folder,
                                                "parallel.zero.offload"))
                        .orElse(null),
                host(settings));
    }

    private static DeviceScope host(GptSettings settings) {
        return settings.offloadFolder()
                .<DeviceScope>map(
                        folder ->
                                new MappedScope(
                                        MemoryUse.HOST_ACTIVATIONS, folder, "device.offload"))
                .orElseGet(() -> new HostScope(MemoryUse.HOST_ACTIVATIONS));
    }

    /**
     * The same for a stage that may be swapped.
     *
     * @param kept whether what is swapped goes on with what an earlier process left
     */
    public static StageScopes of(
            GptSettings settings,
            DeviceScope parent,
            String name,
            int replica,
            int stage,
            boolean kept) {
        if (settings.zero().swap().isEmpty()) {
            return of(settings, parent, name);
        }
        SwapSettings swap = settings.zero().swap().get();
        Path folder = SwapState.folder(swap.folder(), replica, stage);
        return new StageScopes(
                parent,
                name,
                null,
                host(settings),
                scratch -> new SwapFolder(folder, scratch, kept, swap.dropsPages()));
    }

    /** Scopes that allocate nothing and only count. */
    public static StageScopes counting(GptSettings settings, String name) {
        return new StageScopes(
                new CountingScope("prediction"),
                name,
                settings.zero().offload().isPresent() ? new CountingScope("offloaded") : null,
                new CountingScope(MemoryUse.HOST_ACTIVATIONS),
                settings.zero().swap().isPresent()
                        ? scratch -> new CountedSwap(new CountingScope("swapped"), scratch)
                        : null);
    }

    /**
     * @param offloaded holds moments and own parts of sharded parameters instead; closed with this
     * @param host holds activations that left the device; closed with this
     */
    public StageScopes(
            DeviceScope parent, String name, @Nullable DeviceScope offloaded, DeviceScope host) {
        this(parent, name, offloaded, host, null);
    }

    private StageScopes(
            DeviceScope parent,
            String name,
            @Nullable DeviceScope offloaded,
            DeviceScope host,
            @Nullable Function<DeviceScope, SwapSpace> swapped) {
        this.host = host;
        this.offloaded = offloaded;
        this.swapped = swapped;
        whole = parent.child(name, Long.MAX_VALUE);
        parameters = whole.child(MemoryUse.PARAMETERS, Long.MAX_VALUE);
        gradients = whole.child(MemoryUse.GRADIENTS, Long.MAX_VALUE);
        optimizer = whole.child(MemoryUse.OPTIMIZER, Long.MAX_VALUE);
        activations = whole.child(MemoryUse.ACTIVATIONS, Long.MAX_VALUE);
        keyValues = whole.child(MemoryUse.KEY_VALUES, Long.MAX_VALUE);
        scratch = whole.child(MemoryUse.SCRATCH, Long.MAX_VALUE);
        gathered = whole.child(MemoryUse.GATHERED, Long.MAX_VALUE);
        accumulators = whole.child(MemoryUse.ACCUMULATORS, Long.MAX_VALUE);
    }

    /** Returns where everything lies that is swapped; null if nothing is. */
    public @Nullable SwapSpace swap() {
        if (swap == null && swapped != null) {
            swap = swapped.apply(scratch());
        }
        return swap;
    }

    /** Takes scratch from there instead, which the stages of a rank share. */
    public void shareScratch(OpScratch ofRank) {
        shared = ofRank;
    }

    public DeviceScope parameters() {
        return parameters;
    }

    public DeviceScope gradients() {
        return gradients;
    }

    public DeviceScope optimizer() {
        return offloaded == null ? optimizer : offloaded;
    }

    /** Returns the scope for own parts of sharded parameters. */
    public DeviceScope ownParts() {
        return offloaded == null ? parameters : offloaded;
    }

    public DeviceScope activations() {
        return activations;
    }

    /** Returns the scope for queries, keys and values. */
    public DeviceScope keyValues() {
        return keyValues;
    }

    /** Returns the scope for what an op writes before it reads it. */
    public DeviceScope scratch() {
        return shared == null ? scratch : shared;
    }

    /** Returns the scope for tables that are filled once and counted as scratch. */
    public DeviceScope tables() {
        return scratch;
    }

    public DeviceScope gathered() {
        return gathered;
    }

    public DeviceScope accumulators() {
        return accumulators;
    }

    /** Returns the scope for activations that left the device. */
    public DeviceScope host() {
        return host;
    }

    public StageMemory memory() {
        return new StageMemory(
                parameters.liveBytes(),
                gradients.liveBytes(),
                optimizer.liveBytes(),
                activations.liveBytes(),
                keyValues.liveBytes(),
                scratch.liveBytes(),
                gathered.liveBytes(),
                accumulators.liveBytes(),
                diskBytes(),
                host.liveBytes());
    }

    /** Returns the bytes of this stage's files for state that is divided or swapped. */
    public long diskBytes() {
        return (offloaded == null ? 0 : offloaded.liveBytes()) + (swap == null ? 0 : swap.bytes());
    }

    @Override
    public void close() {
        closeScopes();
        if (offloaded != null) {
            offloaded.close();
        }
        if (swap != null) {
            swap.close();
        }
        host.close();
    }

    private void closeScopes() {
        accumulators.close();
        gathered.close();
        scratch.close();
        keyValues.close();
        activations.close();
        optimizer.close();
        gradients.close();
        parameters.close();
        whole.close();
    }
}
