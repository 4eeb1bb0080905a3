"""``plstream features``: image features."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .options import Force, as_list

Pool = StrEnum("Pool", ["none", "avg", "max"])
Resample = StrEnum("Resample", ["lanczos", "bicubic", "bilinear", "box"])
Channels = StrEnum("Channels", ["rgb", "bgr"])
Precision = StrEnum("Precision", ["float16", "float32"])


def features(
    images: Annotated[
        str,
        typer.Argument(
            metavar="IMAGES",
            help="Folder, pattern such as 'faces/*/*.jpg', .tar or .zip, batches of ImageNet 32x32 or CIFAR, or text "
            "file of paths.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File to write.")] = Path(
        "features.npy"
    ),
    model: Annotated[
        str, typer.Option(metavar="vgg16|vggface|FILE", help="VGG16 of ImageNet or of VGGFace, or an ONNX model.")
    ] = "vgg16",
    weights: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Weights of VGG16 with the names of torchvision or VGGFace: safetensors, .pth."
        ),
    ] = None,
    layer: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="conv1_1 to pool5, or any tensor of an ONNX model. Default: conv5_3, its output."
        ),
    ] = None,
    pool: Annotated[Pool, typer.Option(help="Reduce each feature map to one number.")] = Pool.none,
    size: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Height and width to resize to. Default: 224, that of images in batches, or that of the ONNX model.",
        ),
    ] = None,
    resample: Annotated[Resample, typer.Option(help="Interpolation when resizing.")] = Resample.lanczos,
    mean: Annotated[
        str | None, typer.Option(metavar="R,G,B", help="Subtracted from RGB / 255. Default: that of ImageNet, VGGFace.")
    ] = None,
    std: Annotated[
        str | None, typer.Option(metavar="R,G,B", help="Divisors after the mean. Default: that of ImageNet, 1/255.")
    ] = None,
    channels: Annotated[
        Channels | None, typer.Option(help="Channel order of the network. Default: rgb, bgr for VGGFace.")
    ] = None,
    crop: Annotated[float, typer.Option(help="Share of height and width to keep, around the centre; at most 1.")] = 1.0,
    per_folder: Annotated[
        bool, typer.Option("--per-folder", help="One row per folder, such as a video: the mean over its images.")
    ] = False,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Classes of ImageNet's validation images: its development kit, or a list of images and classes. "
            "Default: the kit near the images.",
        ),
    ] = None,
    dtype: Annotated[Precision, typer.Option(help="Type of the numbers.")] = Precision.float32,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Images per batch. Default: about 256 MB.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of the network. Default: all cores.")] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out unreadable images.")] = False,
    force: Force = False,
) -> None:
    """Extract features of images with a network, one row per image; the names go to a .txt file.

    Images are rotated upright, converted to RGB, resized to a square regardless of aspect ratio (Lanczos), divided
    by 255, and normalized by the mean and standard deviation that the network was trained with.

    After a crash or Ctrl-C, run the same command to resume.

    \b
    plstream features lfw.tar --weights vgg16.safetensors --size 64 -o lfw.npy
    plstream features photos --weights vgg16.safetensors --layer pool5 --pool avg --dtype float16
    plstream features imagenet32 --weights vgg16.safetensors --layer pool5
    plstream features ILSVRC2012_img_val.tar --labels ILSVRC2012_devkit_t12 --weights vgg16.safetensors
    plstream features aligned_images_DB --crop 0.4545 --per-folder --model vggface --weights vgg_face.safetensors
    plstream features photos --model resnet.onnx --layer flatten0
    """
    from .._core.errors import counted
    from ..vision import extract_features
    from .errors import FAILED, tell
    from .output import require_free
    from .progress import shown

    require_free(output, force=force, endings=(".npy",))
    try:
        with shown():
            made = extract_features(
                images,
                output,
                model=model,
                weights=weights,
                layer=layer,
                pool=pool.value,
                size=size,
                resample=resample.value,
                mean=_as_numbers("--mean", mean),
                std=_as_numbers("--std", std),
                channels=None if channels is None else channels.value,
                crop=crop,
                per_folder=per_folder,
                labels=labels,
                dtype=dtype.value,
                batch_size=batch_size,
                threads=threads,
                skip_bad=skip_bad,
                overwrite=force,
            )
    except KeyboardInterrupt:
        tell("plstream: interrupted; run the same command to resume.")
        raise typer.Exit(FAILED) from None
    names = output.with_suffix(".txt")
    rows = counted(len(made), "folder" if per_folder else "image")
    typer.echo(f"{output}: {rows} of {counted(made.shape[1], 'feature')}, {made.dtype}; names in {names}")


def _as_numbers(option: str, text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(entry) for entry in as_list([text]))
    except ValueError:
        raise ValueError(f"{option} {text} is not three numbers, such as 0.485,0.456,0.406.") from None
