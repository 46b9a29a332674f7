import classes from './PictureFrame.module.css';

interface Props {
  /** PNG in base64; undefined while it is loading. */
  image: string | undefined;
  /** Pixels of each edge on the page. */
  size: number;
  alt: string;
}

/** A model's input picture: square, enlarged without smoothing. */
export function PictureFrame({ image, size, alt }: Props) {
  return (
    <div className={classes.frame} style={{ width: size, height: size }}>
      {image && (
        <img
          src={`data:image/png;base64,${image}`}
          alt={alt}
          width={size}
          height={size}
          data-testid="picture-shown"
        />
      )}
    </div>
  );
}
