package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceCollectives;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.kernels.CheckedKernels;
import dev.penstock.cuda.memory.AccountedScope;
import dev.penstock.cuda.memory.Scratch;
import dev.penstock.cuda.nccl.Nccl;

/**
 * An NVIDIA GPU. Kernels run behind their calls, in the order of the calls; the host sees their
 * results through a tensor's segment or after {@link Kernels#finish}.
 */
public final class GpuDevice implements Device {
    private final GpuProbe.Gpu gpu;
    private final GpuContext context;
    private final CopyStreams copies;
    private final DeviceScope memory;
    private final DeviceScope scratchScope;
    private final Scratch partialSums;
    private final Scratch attentionSums;
    private final GpuProducts products;
    private final Kernels kernels;

    private GpuDevice(GpuProbe.Gpu gpu, GpuContext context, DeviceSettings settings) {
        this.gpu = gpu;
        this.context = context;
        copies = new CopyStreams(context);
        memory =
                AccountedScope.root(
                        new GpuMemory(context, copies),
                        "gpu " + gpu.index(),
                        settings.memoryLimitBytes(),
                        settings.traceAllocations());
        scratchScope = memory.child(KERNELS, Long.MAX_VALUE);
        partialSums = new Scratch(scratchScope, "partial sums");
        attentionSums = new Scratch(scratchScope, "attention sums");
        GpuModule module = new GpuModule(context);
        Launch launch = new Launch(context);
        GpuElements elements = new GpuElements(context, module, launch);
        GpuSums sums =
                new GpuSums(
                        module,
                        launch,
                        elements,
                        partialSums,
                        scratchScope.tensor("result", DType.I32, 1, GpuSums.RESULT_WORDS));
        products = products(settings, elements, module, launch);
        kernels =
                new CheckedKernels(
                        new GpuKernels(
                                context,
                                module,
                                launch,
                                products,
                                new GpuAttention(module, launch, attentionSums),
                                elements,
                                sums));
    }

    private GpuProducts products(
            DeviceSettings settings, GpuElements elements, GpuModule module, Launch launch) {
        try {
            return new ProductChoice(context, gpu, scratchScope, elements, module, launch)
                    .choose(settings.gemm());
        } catch (DeviceException e) {
            closeMemory();
            throw e;
        }
    }

    /**
     * Opens a GPU. Several devices may share one.
     *
     * @param settings which GPU and how much of its memory
     * @throws DeviceException if there is no such GPU, saying why, or if the driver refuses
     */
    public static GpuDevice open(DeviceSettings settings) {
        GpuProbe.Gpu gpu = wanted(settings.gpu());
        GpuContext context = new GpuContext(gpu.index());
        try {
            return new GpuDevice(gpu, context, settings);
        } catch (RuntimeException e) {
            context.close();
            throw e;
        }
    }

    private static GpuProbe.Gpu wanted(int index) {
        return switch (GpuProbe.run()) {
            case GpuProbe.None(String reason) ->
                    throw new DeviceException(
                            "opening device cuda:%d: expected an NVIDIA GPU, but %s; try device = cpu"
                                    .formatted(index, reason));
            case GpuProbe.Found(var gpus) -> {
                if (index >= gpus.size()) {
                    throw new DeviceException(
                            "opening device cuda:%d: expected one of the %d GPUs that the driver offers, cuda:0 to cuda:%d"
                                    .formatted(index, gpus.size(), gpus.size() - 1));
                }
                yield gpus.get(index);
            }
        };
    }

    @Override
    public String name() {
        return "cuda:%d (%s, compute capability %s, %s)"
                .formatted(gpu.index(), gpu.name(), gpu.computeCapability(), products.name());
    }

    @Override
    public String fingerprint() {
        return "cuda-1/%s/%s/%s"
                .formatted(gpu.name(), gpu.computeCapability(), products.fingerprint());
    }

    @Override
    public DeviceScope memory() {
        return memory;
    }

    @Override
    public Kernels kernels() {
        return kernels;
    }

    @Override
    public DeviceCollectives openCollectives() {
        return switch (Nccl.probe()) {
            case Nccl.Probe.Found(Nccl library) -> new GpuCollectives(context, library);
            case Nccl.Probe.Missing(String reason) ->
                    throw new DeviceException(
                            "GPU %d: expected NCCL, but %s; install it, or name its place with -Dpenstock.nccl="
                                    .formatted(gpu.index(), reason));
        };
    }

    @Override
    public void close() {
        products.close();
        closeMemory();
        context.close();
    }

    private void closeMemory() {
        partialSums.close();
        attentionSums.close();
        scratchScope.close();
        memory.close();
        copies.close();
    }
}
