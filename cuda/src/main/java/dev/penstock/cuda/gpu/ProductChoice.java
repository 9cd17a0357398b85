package dev.penstock.cuda.gpu;

import dev.penstock.cuda.cublas.Cublas;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings.Gemm;
import dev.penstock.cuda.device.Gpus;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Who multiplies matrices on a GPU: the first cuBLAS that serves it, or our kernels. */
final class ProductChoice {
    private final GpuContext gpu;
    private final Gpus.Gpu description;
    private final DeviceScope scope;
    private final GpuElements elements;
    private final GpuModule module;
    private final Launch launch;

    /**
     * @param scope for what products work in
     */
    ProductChoice(
            GpuContext gpu,
            Gpus.Gpu description,
            DeviceScope scope,
            GpuElements elements,
            GpuModule module,
            Launch launch) {
        this.gpu = gpu;
        this.description = description;
        this.scope = scope;
        this.elements = elements;
        this.module = module;
        this.launch = launch;
    }

    /**
     * @throws DeviceException if the setting insists on cuBLAS and none serves this GPU, or if it
     *     is for CPUs
     */
    GpuProducts choose(Gemm wanted) {
        return switch (wanted) {
            case KERNELS -> own("as set");
            case AUTO, CUBLAS ->
                    switch (Cublas.probe()) {
                        case Cublas.Probe.Missing(String reason) -> instead(wanted, reason);
                        case Cublas.Probe.Found(var libraries) -> firstOf(libraries, wanted);
                    };
            case ONEDNN, JAVA ->
                    throw new DeviceException(
                            "opening GPU %d: expected gemm = auto, cublas or kernels, got %s, which is for CPUs"
                                    .formatted(
                                            gpu.index(), wanted.name().toLowerCase(Locale.ROOT)));
        };
    }

    private GpuProducts firstOf(List<Cublas> libraries, Gemm wanted) {
        List<String> problems = new ArrayList<>();
        for (Cublas library : libraries) {
            try {
                return CublasProducts.open(gpu, description, library, elements, scope);
            } catch (DeviceException e) {
                gpu.requireWell("opening cuBLAS on GPU " + gpu.index());
                problems.add(library.file() + ": " + e.getMessage());
            }
        }
        return instead(wanted, String.join("; ", problems));
    }

    private GpuProducts instead(Gemm wanted, String reason) {
        if (wanted == Gemm.CUBLAS) {
            throw new DeviceException(
                    "opening GPU %d: expected cuBLAS, but %s; try gemm = auto or kernels"
                            .formatted(gpu.index(), reason));
        }
        return own(reason);
    }

    private GpuProducts own(String reason) {
        return new OwnProducts(module, launch, reason);
    }
}
