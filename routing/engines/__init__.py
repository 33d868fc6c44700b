"""The engines that carry messages to the rules and away: what each operation does by Arrow, without Java."""
