package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceCollectives;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Gpus;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.kernels.CheckedKernels;
import dev.penstock.cuda.memory.AccountedScope;
import dev.penstock.cuda.memory.Scratch;
import dev.penstock.cuda.nccl.Nccl;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * An NVIDIA GPU. Kernels run behind their calls, in the order of the calls; the host sees their
 * results by a copy of a tensor's contents.
 */
public final class GpuDevice implements Device {
    /** What the shipped PTX is for. */
    private static final int LEAST_CAPABILITY = 8;

    private final Gpus.Gpu gpu;
    private final GpuContext context;
    private final DeviceScope memory;
    private final GpuProducts products;
    private final Kernels kernels;
    private final String codeOfKernels;

    /** What gives everything back, the last that was opened first. */
    private final Deque<Runnable> closing = new ArrayDeque<>();

    private GpuDevice(Gpus.Gpu gpu, DeviceSettings settings) {
        this.gpu = gpu;
        try {
            context = new GpuContext(gpu.index());
            closing.push(context::close);
            CopyStreams copies = new CopyStreams(context);
            closing.push(copies::close);
            HostCopies hostCopies = new HostCopies(context);
            closing.push(hostCopies::close);
            memory =
                    AccountedScope.root(
                            new GpuMemory(context, copies, hostCopies),
                            "gpu " + gpu.index(),
                            settings.memoryLimitBytes(),
                            settings.traceAllocations());
            closing.push(memory::close);
            DeviceScope scratchScope = memory.child(KERNELS, Long.MAX_VALUE);
            closing.push(scratchScope::close);
            Scratch partialSums = new Scratch(scratchScope, "partial sums");
            closing.push(partialSums::close);
            Scratch attentionSums = new Scratch(scratchScope, "attention sums");
            closing.push(attentionSums::close);
            Scratch updates = new Scratch(scratchScope, "updates");
            closing.push(updates::close);
            Answers answers = new Answers(context, GpuSums.ANSWER_BYTES);
            closing.push(answers::close);
            GpuModule module = new GpuModule(context, gpu.majorCapability());
            closing.push(module::close);
            codeOfKernels = module.form();
            StreamCollector collector = KernelTimes.ifAsked(context);
            if (collector == null && settings.graphs()) {
                collector = new GpuGraphs(context);
            }
            if (collector != null) {
                closing.push(collector::close);
                context.collectIn(collector);
            }
            Launch launch = new Launch(context);
            GpuElements elements = new GpuElements(context, module, launch);
            GpuSums sums = new GpuSums(module, launch, partialSums, answers);
            products =
                    new ProductChoice(context, gpu, scratchScope, elements, module, launch)
                            .choose(settings.gemm());
            closing.push(products::close);
            kernels =
                    new CheckedKernels(
                            new GpuKernels(
                                    context,
                                    module,
                                    launch,
                                    products,
                                    new GpuAttention(module, launch, attentionSums),
                                    elements,
                                    sums,
                                    new GpuOptimizer(module, launch, updates, hostCopies)));
        } catch (RuntimeException e) {
            close();
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
        return new GpuDevice(wanted(settings.gpu()), settings);
    }

    private static Gpus.Gpu wanted(int index) {
        return switch (GpuProbe.run()) {
            case Gpus.None(String reason) ->
                    throw new DeviceException(
                            "opening device cuda:%d: expected an NVIDIA GPU, but %s; try device.kind = cpu"
                                    .formatted(index, reason));
            case Gpus.Found(var gpus) -> {
                if (index >= gpus.size()) {
                    throw new DeviceException(
                            "opening device cuda:%d: expected one of the %d GPUs that the driver offers, cuda:0 to cuda:%d"
                                    .formatted(index, gpus.size(), gpus.size() - 1));
                }
                yield withOurKernels(gpus.get(index));
            }
        };
    }

    private static Gpus.Gpu withOurKernels(Gpus.Gpu gpu) {
        if (gpu.majorCapability() < LEAST_CAPABILITY) {
            throw new DeviceException(
                    "opening device cuda:%d: expected a GPU of compute capability %d.0 or later (Ampere), got %s of %s; try another GPU or device.kind = cpu"
                            .formatted(
                                    gpu.index(),
                                    LEAST_CAPABILITY,
                                    gpu.name(),
                                    gpu.computeCapability()));
        }
        return gpu;
    }

    @Override
    public String name() {
        return "cuda:%d (%s, compute capability %s, kernels %s, %s)"
                .formatted(
                        gpu.index(),
                        gpu.name(),
                        gpu.computeCapability(),
                        codeOfKernels,
                        products.name());
    }

    @Override
    public String fingerprint() {
        return "cuda-3/%s/%s/%s/%s"
                .formatted(
                        gpu.name(), gpu.computeCapability(), codeOfKernels, products.fingerprint());
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

    /** Goes on where it was when a scope that is open still kept it from its end. */
    @Override
    public void close() {
        while (!closing.isEmpty()) {
            closing.peek().run();
            closing.pop();
        }
    }
}
